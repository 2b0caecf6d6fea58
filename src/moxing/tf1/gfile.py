"""`tf.gfile` as user modules see it: TensorFlow's, with the urls of `mox.file`."""

from __future__ import annotations

from typing import Any

from tensorflow.python.platform import gfile as _real

from moxing.tf1 import remote_files as _remote
from moxing.tf1.remote_files import either as _either


class GFile(_remote.RemoteAware, _real.GFile):
    """`tf.gfile.GFile`."""


class FastGFile(_remote.RemoteAware, _real.FastGFile):
    """`tf.gfile.FastGFile`."""


def Glob(filename: Any) -> list[str]:  # noqa: N802
    """`tf.gfile.Glob`."""
    return _remote.glob_all(filename)


Open = GFile
Copy = _either(_real.Copy, _remote.copy)
DeleteRecursively = _either(_real.DeleteRecursively, _remote.rmtree)
Exists = _either(_real.Exists, _remote.exists)
IsDirectory = _either(_real.IsDirectory, _remote.isdir)
ListDirectory = _either(_real.ListDirectory, _remote.listdir)
MakeDirs = _either(_real.MakeDirs, _remote.makedirs)
MkDir = _either(_real.MkDir, _remote.mkdir)
Remove = _either(_real.Remove, _remote.remove)
Rename = _either(_real.Rename, _remote.rename)
Stat = _either(_real.Stat, _remote.stat)
Walk = _either(_real.Walk, _remote.walk)
