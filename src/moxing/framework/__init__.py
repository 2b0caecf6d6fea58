"""The part of MoXing that needs no TensorFlow: flags, files, small helpers.

`flags` is the registry of MoXing's command-line flags (`flag`: one of them), `misspelled_flags` warns about typos,
`file` is `mox.file`, `util` has helpers at the import paths of the original and for the packages above. Every other
package may import from here.
"""
