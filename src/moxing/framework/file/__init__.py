"""`mox.file`: file functions for local paths, `s3://`, `obs://`, and every scheme that fsspec serves.

The public names are imported here. Rooms: `remote` (files behind a URL), `s3` (the client of object stores), `copying`
(plan a copy, run it), `shifting` (`shift`). `urls` resolves every URL. Importing this package imports neither
TensorFlow nor urllib3.
"""

from moxing.framework.file import file_io as file_io  # Scripts reach it as `mox.file.file_io`.
from moxing.framework.file.auth import set_auth
from moxing.framework.file.content import append, append_remote, read, write
from moxing.framework.file.copying.copy import copy, copy_parallel
from moxing.framework.file.errors import (
    MoxFileNameDuplicateException,
    MoxFileNotExistsException,
    MoxFileReadException,
    MoxFileRespException,
    UnsupportedSchemeError,
)
from moxing.framework.file.file_object import File
from moxing.framework.file.listing import get_size, glob, list_directory, scan_dir, walk
from moxing.framework.file.operations import exists, is_directory, make_dirs, mk_dir, remove, rename, stat
from moxing.framework.file.shifting.shift import shift

__all__ = [
    "File",
    "MoxFileNameDuplicateException",
    "MoxFileNotExistsException",
    "MoxFileReadException",
    "MoxFileRespException",
    "UnsupportedSchemeError",
    "append",
    "append_remote",
    "copy",
    "copy_parallel",
    "exists",
    "get_size",
    "glob",
    "is_directory",
    "list_directory",
    "make_dirs",
    "mk_dir",
    "read",
    "remove",
    "rename",
    "scan_dir",
    "set_auth",
    "shift",
    "stat",
    "walk",
    "write",
]
