"""`tf.io.gfile` as user modules see it: TensorFlow's own, which also takes the urls of `mox.file`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as _tf

from moxing.tf1.files import url_operations as _remote
from moxing.tf1.files.dispatch import dispatch as _dispatch
from moxing.tf1.files.gfile import GFile as GFile

_local = _tf.io.gfile


def glob(pattern: Any) -> list[str]:
    """`tf.io.gfile.glob`."""
    return _remote.glob_all(pattern)


copy = _dispatch(_local.copy, _remote.copy)
exists = _dispatch(_local.exists, _remote.exists)
get_registered_schemes = _local.get_registered_schemes
isdir = _dispatch(_local.isdir, _remote.isdir)
join = _local.join
listdir = _dispatch(_local.listdir, _remote.listdir)
makedirs = _dispatch(_local.makedirs, _remote.makedirs)
mkdir = _dispatch(_local.mkdir, _remote.mkdir)
remove = _dispatch(_local.remove, _remote.remove)
rename = _dispatch(_local.rename, _remote.rename)
rmtree = _dispatch(_local.rmtree, _remote.rmtree)
stat = _dispatch(_local.stat, _remote.stat)
walk = _dispatch(_local.walk, _remote.walk)
