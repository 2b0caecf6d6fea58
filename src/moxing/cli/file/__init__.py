"""`moxing file`: cat, cp, du, ls, rm and sync for local paths and URLs, without TensorFlow.

`commands` adds them to the parser, one module each. `paths` resolves PATH arguments and patterns, `copies` runs a copy
plan of `moxing.framework.file.copying` and reports it, `compare` decides what `sync` copies.
"""
