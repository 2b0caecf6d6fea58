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


copy = _either(_real.copy, _remote.copy)
create_dir = _either(_real.create_dir, _remote.mkdir)
delete_file = _either(_real.delete_file, _remote.remove)
delete_recursively = _either(_real.delete_recursively, _remote.rmtree)
file_exists = _either(_real.file_exists, _remote.exists)
is_directory = _either(_real.is_directory, _remote.isdir)
list_directory = _either(_real.list_directory, _remote.listdir)
read_file_to_string = _either(_real.read_file_to_string, _remote.read_text)
recursive_create_dir = _either(_real.recursive_create_dir, _remote.makedirs)
rename = _either(_real.rename, _remote.rename)
stat = _either(_real.stat, _remote.stat)
walk = _either(_real.walk, _remote.walk)
write_string_to_file = _either(_real.write_string_to_file, _remote.write_text)


def __getattr__(name: str) -> Any:
    return getattr(_real, name)
