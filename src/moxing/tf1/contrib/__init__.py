"""`tf.contrib` for user code: the parts that scripts of 2018 use, each resolved when it is first asked for.

Importing this package imports neither TensorFlow nor tf-slim nor tf-keras. A part that is not here is an error that
says what is, and what people use in its place.
"""

from __future__ import annotations

from typing import Any

from moxing.tf1.contrib import _finder

__all__ = list(_finder.PARTS)

_finder.install()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _finder.part(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
