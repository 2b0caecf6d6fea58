"""Whether a stream is a terminal. Programs replace `sys.stdout` and `sys.stderr`, and close them."""

from __future__ import annotations

import contextlib
import sys
from typing import Any


def is_terminal(stream: Any) -> bool:
    """Returns whether `stream` is an open terminal. An object with only `write` and `flush` is none.

    Example:
      >>> import io
      >>> is_terminal(io.StringIO()), is_terminal(None), is_terminal(object())
      (False, False, False)
    """
    try:
        return bool(stream.isatty())
    except (AttributeError, OSError, ValueError):  # no such method; closed
        return False


def has_terminal() -> bool:
    """Returns whether standard error, where progress bars are drawn, is a terminal.

    Example:
      >>> isinstance(has_terminal(), bool)
      True
    """
    return is_terminal(sys.stderr)


def flush(stream: Any) -> None:
    """Flushes `stream`, unless it is closed or cannot be flushed.

    Example:
      >>> flush(None)
    """
    with contextlib.suppress(AttributeError, OSError, ValueError):
        stream.flush()
