"""The names of `mox.file` at the import path `moxing.framework.file.file_io`, which some scripts use."""

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

# Scripts set these three: the number of worker processes of `copy_parallel`, how many parts of a large file are in
# flight at a time, and whether parts are transferred in parallel (1) or one after the other (2).
_NUMBER_OF_PROCESSES = 4
_LARGE_FILE_TASK_NUM = 8
_LARGE_FILE_METHOD = 1

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
