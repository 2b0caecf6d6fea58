"""Copies one file from any location to any other."""

from __future__ import annotations

import errno
import os
import shutil
import stat as stat_module
import tempfile

from moxing.framework.file.atomic_write import replace_file
from moxing.framework.file.copying.plan import CopyTask
from moxing.framework.file.errors import not_exists
from moxing.framework.file.progress import advance
from moxing.framework.file.urls import RemotePath

_CHUNK = 1 << 20


def copy_file(task: CopyTask) -> None:
    """Copies a file. The copy appears when it is complete."""
    source, target = task.source, task.target
    if isinstance(source, str):
        if isinstance(target, str):
            copy_local(source, target)
            advance(task.length or 0)
        else:
            _upload(source, target, task.concurrency)
        return
    if isinstance(target, str):
        exists = source.backend.download(source.path, target, task.length, task.concurrency)
    elif source.backend.can_copy_to(source.path, target.backend, target.path):
        # The store copies it; the content does not pass through this machine.
        exists = source.backend.copy(source.path, target.path)
        advance(task.length or 0)
    else:
        exists = _copy_between_stores(source, target, task.concurrency)
    if not exists:
        raise not_exists("src_url", source.url, "no such file")


def copy_local(src: str, dst: str) -> None:
    """Copies a local file to a local path in a directory that exists.

    Example:
      >>> copy_local('/no/such/file', '/tmp/x')
      Traceback (most recent call last):
      ...
      FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'
    """
    status = os.stat(src)
    if not stat_module.S_ISREG(status.st_mode):
        # Reading a pipe could block forever.
        raise OSError(errno.EINVAL, "src_url is not a regular file", src)
    if os.path.exists(dst) and os.path.samefile(src, dst):
        return
    with open(src, "rb") as source:
        replace_file(dst, "dst_url", lambda target: shutil.copyfileobj(source, target, _CHUNK), status.st_mode & 0o777)


def _upload(path: str, target: RemotePath, concurrency: int) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        # Opening a pipe could block forever.
        raise OSError(errno.EINVAL, "src_url is not a regular file", path)
    with open(path, "rb") as stream:
        target.backend.upload(stream.fileno(), target.path, concurrency)


def _copy_between_stores(source: RemotePath, target: RemotePath, concurrency: int) -> bool:
    """Copies through the local disk: an object may be larger than the memory."""
    with tempfile.TemporaryDirectory(prefix="mox-") as directory:
        path = os.path.join(directory, "content")
        if not source.backend.download(source.path, path, None, concurrency):
            return False
        _upload(path, target, concurrency)
    return True
