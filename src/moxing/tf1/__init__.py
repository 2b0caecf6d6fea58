"""Everything that knows how TensorFlow 1 differs from TensorFlow 2.

Only this package uses private TensorFlow or patches anything. Its rooms: `user` (what a script sees, and the launcher),
`era` (names of 2018 of other libraries), `files` (TensorFlow's file functions on urls), `graph` (graphs from the
inside), `contrib` and `examples` (packages that TensorFlow no longer has). `environment` prepares the import of
TensorFlow. Imports point one way: `user` may import all rooms, the other rooms do not import each other. Importing this
package imports nothing else, so that the launcher can set the environment before TensorFlow starts.
"""
