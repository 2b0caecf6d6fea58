"""`pickle.load`, `loads` and `dump` as programs of Python 2 use them."""

from __future__ import annotations

import io
import pickle
from typing import Any


def load(file: Any, **options: Any) -> Any:
    """`pickle.load`, also for what Python 2 wrote, and for files that were opened as text.

    Example:
      >>> load(io.BytesIO(b"S'caf\\\\xe9'\\n."))
      'café'
    """
    stream = file.buffer if isinstance(file, io.TextIOWrapper) else file
    if options or not _can_return(stream):
        return pickle.load(stream, **options)
    start = stream.tell()
    try:
        return pickle.load(stream)
    except UnicodeDecodeError:
        # Arrays and texts of Python 2 are bytes.
        stream.seek(start)
        return pickle.load(stream, encoding="latin1")


def loads(data: Any, /, **options: Any) -> Any:
    """`pickle.loads`, also for what Python 2 wrote."""
    if options:
        return pickle.loads(data, **options)
    try:
        return pickle.loads(data)
    except UnicodeDecodeError:
        return pickle.loads(data, encoding="latin1")


def dump(obj: Any, file: Any, protocol: int | None = None, **options: Any) -> None:
    """`pickle.dump`, also to files that were opened as text."""
    if isinstance(file, io.TextIOWrapper):
        file.flush()
        file = file.buffer
    pickle.dump(obj, file, protocol, **options)


def _can_return(stream: Any) -> bool:
    return hasattr(stream, "seekable") and bool(stream.seekable())
