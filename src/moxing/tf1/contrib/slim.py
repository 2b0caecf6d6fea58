"""`tf.contrib.slim`: tf-slim, imported on first use."""

from __future__ import annotations

from typing import Any

from moxing.tf1.contrib import _advice

# Makes it a package: `_finder` finds `tensorflow.contrib.slim.nets` and other modules below it.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from moxing.tf1.contrib import _slim_repairs

    slim = _slim_repairs.load()
    if name == "nets":
        import tf_slim.nets as nets

        return nets
    try:
        return getattr(slim, name)
    except AttributeError:
        raise AttributeError(_advice.missing_name("slim", name, __dir__())) from None


def __dir__() -> list[str]:
    from moxing.tf1.contrib import _slim_repairs

    return sorted({"nets", *(name for name in dir(_slim_repairs.load()) if not name.startswith("_"))})
