"""One file from one place to another, whatever the two places are."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import NamedTuple

from moxing.framework.file.backends import Place, find_place
from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import not_exists
from moxing.framework.file.file_object import open_stream
from moxing.framework.file.paths import local_path
from moxing.framework.file.progress import advance


class CopyTask(NamedTuple):
    """A file to copy, in plain values that can be told to another process.

    `length` and `version` are what a listing of a store said about it, `at_once` is how many parts of it may be under
    way at a time.

    Example:
      >>> CopyTask('s3://bucket/a', '/data/a', 3).length
      3
    """

    source: str
    target: str
    length: int = 0
    version: str | None = None
    at_once: int = 4


def copy_file(task: CopyTask) -> None:
    """Copies a file from one place to another. The copy appears when it is complete."""
    source, target = find_place(task.source, "src_url"), find_place(task.target, "dst_url")
    if source is None and target is not None:
        _upload(local_path(task.source, "src_url"), target, task.at_once)
        return
    if source is None:
        from moxing.framework.file.transfer import copy_local

        copy_local(local_path(task.source, "src_url"), local_path(task.target, "dst_url"))
        advance(task.length)
        return
    if target is None:
        known = None if task.version is None else RemoteEntry("", False, task.length, 0, task.version)
        found = source.backend.download(source.path, local_path(task.target, "dst_url"), known, task.at_once)
    elif source.backend.can_copy_to(source.path, target.backend, target.path):
        # The content never leaves the store.
        found = source.backend.copy(source.path, target.path)
        advance(task.length)
    else:
        found = _copy_between(source, target, task.at_once)
    if not found:
        raise not_exists("src_url", task.source, "no such file")


def _upload(path: str, target: Place, at_once: int) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        # Opening a pipe could wait for ever.
        raise OSError(errno.EINVAL, "src_url is not a regular file", path)
    with open_stream(path, "rb", "src_url") as stream:
        target.backend.upload(stream.fileno(), target.path, at_once)


def _copy_between(source: Place, target: Place, at_once: int) -> bool:
    """From one store to another, through the disk: an object may be larger than the memory."""
    with tempfile.TemporaryDirectory(prefix="mox-") as directory:
        path = os.path.join(directory, "content")
        if not source.backend.download(source.path, path, None, at_once):
            return False
        _upload(path, target, at_once)
    return True
