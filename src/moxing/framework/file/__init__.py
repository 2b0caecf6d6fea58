"""`mox.file`: files by path or url: local disks, `s3://`, `obs://`, and what fsspec has a package for."""

from moxing.framework.file import file_io as file_io  # Scripts reach it as `mox.file.file_io`.
from moxing.framework.file.auth import set_auth
from moxing.framework.file.content import append, append_remote, read, write
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
from moxing.framework.file.shifting import shift
from moxing.framework.file.transfer import copy, copy_parallel

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
