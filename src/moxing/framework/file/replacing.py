"""Files that appear under their name only when they are complete."""

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
    """Writes the file `path` with `fill`: beside it, flushed to the disk, and then renamed.

    Whoever opens `path` meanwhile reads the old content. If `fill` fails or the process is killed, the old content
    stays; after a kill a file `.mox-*.tmp` may be left beside it. A symbolic link keeps pointing where it did.

    Args:
      path: The local path.
      argument: The caller's argument that `path` came from, for error messages.
      fill: Gets the open file and writes the content.
      permissions: Those of a new file, before the umask. An existing file keeps its own.
      durable: Whether it has to survive a failure of the machine. What can be fetched again need not.

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
    # Not derived from the target's name, which may be as long as the file system allows already.
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
    """What is at a path that is to be written, None for nothing; a file that is read-only is an error.

    What is there and no regular file, a device or a pipe, has to be written to: renaming over /dev/null would destroy
    it. A directory is refused by open().

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
