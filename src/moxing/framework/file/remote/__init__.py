"""Files behind a URL: the backends, and what `mox.file` builds on them.

`backend.Backend` is the interface. `object_store` implements it for `s3://` and `obs://` on top of the client in
`moxing.framework.file.s3`, with `object_reader` and `object_writer` for open files; `fsspec_backend` implements it for
all other schemes. `open_file`, `listing` and `operations` are the remote side of the functions of `mox.file`.
`moxing.framework.file.urls` hands out backends; nothing else creates one.
"""
