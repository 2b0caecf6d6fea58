"""A full disk: one sentence with the path, the free space and the last good checkpoint."""

from __future__ import annotations

import errno
import os
import shutil

import tensorflow.compat.v1 as tf

_FULL = (errno.ENOSPC, errno.EDQUOT)
_TEXTS = tuple(os.strerror(number) for number in _FULL)


def is_full(error: BaseException) -> bool:
    """Returns whether an error of Python or TensorFlow says that a disk or quota is full.

    Example:
      >>> is_full(OSError(errno.ENOSPC, 'No space left on device')), is_full(OSError(errno.EACCES, 'Permission denied'))
      (True, False)
    """
    if isinstance(error, OSError):
        return error.errno in _FULL
    return isinstance(error, tf.errors.OpError) and any(text in error.message for text in _TEXTS)


def explain(error: BaseException, what: str, directory: str, last: str | None) -> None:
    """Raises an error in words if `error` means that the disk is full.

    Args:
      error: why `what` could not be written.
      what: what is written.
      directory: where.
      last: the last good checkpoint.

    Raises:
      OSError: the disk is full.
    """
    if not is_full(error):
        return
    kept = f"the last good checkpoint is {last}" if last else "there is no checkpoint yet"
    text = f"{what} could not be written, the disk is full ({free_space(directory)} free); {kept}"
    raise OSError(errno.ENOSPC, text, directory) from None


def free_space(directory: str) -> str:
    """Returns the free space on the disk of a directory in words.

    Example:
      >>> free_space('/no/such/directory')
      'unknown space'
    """
    try:
        return f"{shutil.disk_usage(directory).free / 1e6:,.1f} MB"
    except OSError:
        return "unknown space"
