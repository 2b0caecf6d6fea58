"""`tf.contrib` for user code: the parts that scripts of 2018 use, each imported on first use.

Most modules are tables of names and the places where TensorFlow, tf-slim or tf-keras have them today (`_lazy`); `data`,
`image`, `layers` and `rnn` also define functions. Importing this package imports none of the libraries. A missing part
raises an error that lists the available parts and suggests a replacement (`_advice`).
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
