"""Everything that knows how TensorFlow 1 differs from TensorFlow 2.

Only this package uses private modules of TensorFlow or patches it. Below it: `user` (what a script sees, and the
launcher), `era` (names of 2018 of other libraries), `files` (TensorFlow's file functions on urls), `graph` (graphs from
the inside), `estimator` (tensorflow-estimator, repaired), `contrib` and `examples` (packages that TensorFlow no longer
has). `environment` prepares the import of TensorFlow. Imports point one way: `user` may import all of them, the others
do not import each other. Importing this package imports nothing else, so that the launcher can set the environment
before TensorFlow starts.
"""
