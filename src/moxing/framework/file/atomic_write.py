"""Writes files atomically: a file appears under its name only when it is complete."""

from __future__ import annotations

import os
import stat as stat_module
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from moxing.framework.file.errors import not_exists


def replace_file(
    path: str,
    argument: str,
    fill: Callable[[IO[bytes]], object],
    permissions: int = 0o666,
    durable: bool = True,
) -> None:
    """Writes a file with `fill`: to a temporary file next to it, flushed to the disk, then renamed.

    Readers see the old content until then. If `fill` fails or the process is killed, the old content stays; a killed
    process may leave a file `.mox-*.tmp`. A symbolic link at `path` stays, and the file it points to is replaced.

    Args:
      path: The local path.
      argument: The name of the caller's argument, for error messages.
      fill: Writes the content to the open file.
      permissions: The mode of a new file, before the umask. An existing file keeps its own.
      durable: Whether to flush to the disk. Not needed for what can be downloaded again.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     replace_file(folder + '/a', 'url', lambda stream: stream.write(b'x'))
      ...     os.listdir(folder)
      ['a']
    """
    target = os.path.realpath(path)
    existing = check_target(path, argument)
    if existing is not None and not stat_module.S_ISREG(existing.st_mode):
        with open(target, "wb") as stream:
            fill(stream)
        return
    if existing is not None:
        permissions = stat_module.S_IMODE(existing.st_mode)
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        raise not_exists(argument, path, f"the directory {directory!r} does not exist, mox.file.make_dirs creates it")
    # Not derived from the target's name, which may already have the maximum length.
    temporary = os.path.join(directory, f".mox-{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, permissions & 0o777)
    try:
        with open(descriptor, "wb") as stream:
            fill(stream)
            stream.flush()
            if existing is not None:
                os.fchmod(descriptor, permissions)
            if durable:
                os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def check_target(path: str, argument: str) -> os.stat_result | None:
    """Returns the status of the file to be replaced, None if there is none. A read-only file is an error.

    A device or pipe must be written to, not replaced: a rename over /dev/null would destroy it. A directory is refused
    by open().

    Example:
      >>> check_target('/dev/null', 'url').st_size
      0
    """
    try:
        existing = os.stat(path)
    except FileNotFoundError:
        return None
    if stat_module.S_ISREG(existing.st_mode) and not os.access(path, os.W_OK):
        raise PermissionError(13, f"{argument}: the file is read-only", path)
    return existing
