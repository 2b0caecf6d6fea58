"""`tf.io.gfile` as user modules see it: TensorFlow's, with the urls of `mox.file`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as _tf

from moxing.tf1 import remote_files as _remote
from moxing.tf1.gfile import GFile as GFile
from moxing.tf1.remote_files import either as _either

_real = _tf.io.gfile


def glob(pattern: Any) -> list[str]:
    """`tf.io.gfile.glob`."""
    return _remote.glob_all(pattern)


copy = _either(_real.copy, _remote.copy)
exists = _either(_real.exists, _remote.exists)
get_registered_schemes = _real.get_registered_schemes
isdir = _either(_real.isdir, _remote.isdir)
join = _real.join
listdir = _either(_real.listdir, _remote.listdir)
makedirs = _either(_real.makedirs, _remote.makedirs)
mkdir = _either(_real.mkdir, _remote.mkdir)
remove = _either(_real.remove, _remote.remove)
rename = _either(_real.rename, _remote.rename)
rmtree = _either(_real.rmtree, _remote.rmtree)
stat = _either(_real.stat, _remote.stat)
walk = _either(_real.walk, _remote.walk)
