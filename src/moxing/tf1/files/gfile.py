"""`tf.gfile` as user modules see it: TensorFlow's own, which also takes the urls of `mox.file`."""

from __future__ import annotations

from typing import Any

from tensorflow.python.platform import gfile as _local

from moxing.tf1.files import url_operations as _remote
from moxing.tf1.files.dispatch import dispatch as _dispatch
from moxing.tf1.files.url_file import UrlFile as _UrlFile


class GFile(_UrlFile, _local.GFile):
    """`tf.gfile.GFile`."""


class FastGFile(_UrlFile, _local.FastGFile):
    """`tf.gfile.FastGFile`."""


def Glob(filename: Any) -> list[str]:  # noqa: N802
    """`tf.gfile.Glob`."""
    return _remote.glob_all(filename)


Open = GFile
Copy = _dispatch(_local.Copy, _remote.copy)
DeleteRecursively = _dispatch(_local.DeleteRecursively, _remote.rmtree)
Exists = _dispatch(_local.Exists, _remote.exists)
IsDirectory = _dispatch(_local.IsDirectory, _remote.isdir)
ListDirectory = _dispatch(_local.ListDirectory, _remote.listdir)
MakeDirs = _dispatch(_local.MakeDirs, _remote.makedirs)
MkDir = _dispatch(_local.MkDir, _remote.mkdir)
Remove = _dispatch(_local.Remove, _remote.remove)
Rename = _dispatch(_local.Rename, _remote.rename)
Stat = _dispatch(_local.Stat, _remote.stat)
Walk = _dispatch(_local.Walk, _remote.walk)
