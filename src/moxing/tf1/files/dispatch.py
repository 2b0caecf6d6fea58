"""Sends a call to TensorFlow's function, or to that of `mox.file` for urls that TensorFlow does not know."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.lib.io import file_io

from moxing.framework.file.urls import get_scheme

#: Errors of `mox.file` and the errors that TensorFlow raises in their place. The first match counts.
_TENSORFLOW_ERRORS: tuple[tuple[type[Exception], type[tf.errors.OpError]], ...] = (
    (FileNotFoundError, tf.errors.NotFoundError),
    (FileExistsError, tf.errors.AlreadyExistsError),
    (IsADirectoryError, tf.errors.FailedPreconditionError),
    (NotADirectoryError, tf.errors.FailedPreconditionError),
    (PermissionError, tf.errors.PermissionDeniedError),
    (ValueError, tf.errors.InvalidArgumentError),
)


def is_remote(path: Any) -> bool:
    """Returns True if a path is a url that `mox.file` serves and TensorFlow does not.

    Example:
      >>> is_remote('s3://bucket/a'), is_remote('/data/a'), is_remote('ram://a'), is_remote(True)
      (True, False, False, False)
    """
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    text = os.fsdecode(path)
    scheme = get_scheme(text) if "://" in text else None
    return scheme is not None and scheme not in _tensorflow_schemes()


@functools.cache
def _tensorflow_schemes() -> frozenset[str]:
    return frozenset(file_io.get_registered_schemes())


def dispatch(local: Callable[..., Any], remote: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls `remote` if an argument is a url of `mox.file`, and `local` otherwise.

    Args:
      local: TensorFlow's function.
      remote: takes the same arguments in the same order. Its errors become those of TensorFlow.

    Example:
      >>> exists = dispatch(tf.gfile.Exists, lambda filename: True)
      >>> exists('/no/such/file'), exists('s3://bucket/a')
      (False, True)
    """
    call_remote = with_tensorflow_errors(remote)

    @functools.wraps(local)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_remote, args)) or any(map(is_remote, kwargs.values())):
            # By position: parameter names differ between the versions of TensorFlow's API.
            bound = inspect.signature(local).bind(*args, **kwargs)
            bound.apply_defaults()
            return call_remote(*bound.args)
        return local(*args, **kwargs)

    return call


def with_tensorflow_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that raises the errors of TensorFlow in place of those of `mox.file`.

    Example:
      >>> with_tensorflow_errors(open)('/no/such/file')  # doctest: +ELLIPSIS
      Traceback (most recent call last):
      tensorflow.python.framework.errors_impl.NotFoundError: ...
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (OSError, ValueError) as error:
            raise tensorflow_error(error) from error

    return call


def tensorflow_error(error: Exception) -> Exception:
    """Returns the TensorFlow error that scripts expect in place of an error of `mox.file`.

    Example:
      >>> type(tensorflow_error(FileNotFoundError(2, 'no such file', 's3://bucket/a'))).__name__
      'NotFoundError'
    """
    kind = next((theirs for ours, theirs in _TENSORFLOW_ERRORS if isinstance(error, ours)), tf.errors.UnknownError)
    status = getattr(getattr(error, "resp", None), "status", None)
    if status in (401, 403):
        kind = tf.errors.PermissionDeniedError
    elif status == 0 or (isinstance(status, int) and status >= 500):
        kind = tf.errors.UnavailableError
    return kind(None, None, str(error))
