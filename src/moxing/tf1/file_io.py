"""`tensorflow.python.lib.io.file_io` as user modules see it: TensorFlow's, with the urls of `mox.file`."""

from __future__ import annotations

from typing import Any

from tensorflow.python.lib.io import file_io as _real

from moxing.tf1 import remote_files as _remote
from moxing.tf1.remote_files import either as _either


class FileIO(_remote.RemoteAware, _real.FileIO):
    """`file_io.FileIO`."""


def get_matching_files(filename: Any) -> list[str]:
    """`file_io.get_matching_files`."""
    return _remote.glob_all(filename)


def get_matching_files_v2(pattern: Any) -> list[str]:
    """`file_io.get_matching_files_v2`."""
    return _remote.glob_all(pattern)


atomic_write_string_to_file = _either(_real.atomic_write_string_to_file, _remote.write_new)
copy = _either(_real.copy, _remote.copy)
copy_v2 = _either(_real.copy_v2, _remote.copy)
create_dir = _either(_real.create_dir, _remote.mkdir)
create_dir_v2 = _either(_real.create_dir_v2, _remote.mkdir)
delete_file = _either(_real.delete_file, _remote.remove)
delete_file_v2 = _either(_real.delete_file_v2, _remote.remove)
delete_recursively = _either(_real.delete_recursively, _remote.rmtree)
delete_recursively_v2 = _either(_real.delete_recursively_v2, _remote.rmtree)
file_crc32 = _either(_real.file_crc32, _remote.crc32)
file_exists = _either(_real.file_exists, _remote.exists)
file_exists_v2 = _either(_real.file_exists_v2, _remote.exists)
filecmp = _either(_real.filecmp, _remote.is_same)
has_atomic_move = _either(_real.has_atomic_move, _remote.has_atomic_move)
is_directory = _either(_real.is_directory, _remote.isdir)
is_directory_v2 = _either(_real.is_directory_v2, _remote.isdir)
list_directory = _either(_real.list_directory, _remote.listdir)
list_directory_v2 = _either(_real.list_directory_v2, _remote.listdir)
read_file_to_string = _either(_real.read_file_to_string, _remote.read_text)
recursive_create_dir = _either(_real.recursive_create_dir, _remote.makedirs)
recursive_create_dir_v2 = _either(_real.recursive_create_dir_v2, _remote.makedirs)
rename = _either(_real.rename, _remote.rename)
rename_v2 = _either(_real.rename_v2, _remote.rename)
stat = _either(_real.stat, _remote.stat)
stat_v2 = _either(_real.stat_v2, _remote.stat)
walk = _either(_real.walk, _remote.walk)
walk_v2 = _either(_real.walk_v2, _remote.walk)
write_string_to_file = _either(_real.write_string_to_file, _remote.write_text)


def __getattr__(name: str) -> Any:
    return getattr(_real, name)
