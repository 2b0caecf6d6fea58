"""`file_io` of `tensorflow.python.lib.io` as user modules see it: TensorFlow's own, plus the urls of `mox.file`."""

from __future__ import annotations

from typing import Any

from tensorflow.python.lib.io import file_io as _local

from moxing.tf1.files import url_operations as _remote
from moxing.tf1.files.dispatch import dispatch as _dispatch
from moxing.tf1.files.url_file import UrlFile as _UrlFile


class FileIO(_UrlFile, _local.FileIO):
    """`file_io.FileIO`."""


def get_matching_files(filename: Any) -> list[str]:
    """`file_io.get_matching_files`."""
    return _remote.glob_all(filename)


def get_matching_files_v2(pattern: Any) -> list[str]:
    """`file_io.get_matching_files_v2`."""
    return _remote.glob_all(pattern)


atomic_write_string_to_file = _dispatch(_local.atomic_write_string_to_file, _remote.write_new)
copy = _dispatch(_local.copy, _remote.copy)
copy_v2 = _dispatch(_local.copy_v2, _remote.copy)
create_dir = _dispatch(_local.create_dir, _remote.mkdir)
create_dir_v2 = _dispatch(_local.create_dir_v2, _remote.mkdir)
delete_file = _dispatch(_local.delete_file, _remote.remove)
delete_file_v2 = _dispatch(_local.delete_file_v2, _remote.remove)
delete_recursively = _dispatch(_local.delete_recursively, _remote.rmtree)
delete_recursively_v2 = _dispatch(_local.delete_recursively_v2, _remote.rmtree)
file_crc32 = _dispatch(_local.file_crc32, _remote.crc32)
file_exists = _dispatch(_local.file_exists, _remote.exists)
file_exists_v2 = _dispatch(_local.file_exists_v2, _remote.exists)
filecmp = _dispatch(_local.filecmp, _remote.is_same)
has_atomic_move = _dispatch(_local.has_atomic_move, _remote.has_atomic_move)
is_directory = _dispatch(_local.is_directory, _remote.isdir)
is_directory_v2 = _dispatch(_local.is_directory_v2, _remote.isdir)
list_directory = _dispatch(_local.list_directory, _remote.listdir)
list_directory_v2 = _dispatch(_local.list_directory_v2, _remote.listdir)
read_file_to_string = _dispatch(_local.read_file_to_string, _remote.read_text)
recursive_create_dir = _dispatch(_local.recursive_create_dir, _remote.makedirs)
recursive_create_dir_v2 = _dispatch(_local.recursive_create_dir_v2, _remote.makedirs)
rename = _dispatch(_local.rename, _remote.rename)
rename_v2 = _dispatch(_local.rename_v2, _remote.rename)
stat = _dispatch(_local.stat, _remote.stat)
stat_v2 = _dispatch(_local.stat_v2, _remote.stat)
walk = _dispatch(_local.walk, _remote.walk)
walk_v2 = _dispatch(_local.walk_v2, _remote.walk)
write_string_to_file = _dispatch(_local.write_string_to_file, _remote.write_text)


def __getattr__(name: str) -> Any:
    return getattr(_local, name)
