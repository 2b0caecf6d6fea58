"""Optimizers of `tf.contrib.opt` that are not available: they can be imported, and raise an error when called."""

from __future__ import annotations

from typing import Any

_ELASTIC = "use the wrapper easgd of mox.get_optimizer_wrapper_fn"
_INSTEAD = {
    "AGNCustomGetter": "use mox.run, which combines the gradients of workers",
    "AGNOptimizer": "use mox.run, which combines the gradients of workers",
    "DelayCompensatedGradientDescentOptimizer": "use tf.train.GradientDescentOptimizer",
    "DropStaleGradientOptimizer": "use mox.run with --variable_update=parameter_server, which is synchronous",
    "ElasticAverageCustomGetter": _ELASTIC,
    "ElasticAverageOptimizer": _ELASTIC,
    "GGTOptimizer": "use tf.contrib.opt.AdamWOptimizer",
    "LARSOptimizer": "use the wrapper lars of mox.get_optimizer_wrapper_fn",
    "ModelAverageCustomGetter": _ELASTIC,
    "ModelAverageOptimizer": _ELASTIC,
    "RegAdagradOptimizer": "use tf.train.AdagradOptimizer",
    "ShampooOptimizer": "use tf.contrib.opt.AdamWOptimizer",
}


def __getattr__(name: str) -> Any:
    if name not in _INSTEAD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"tf.contrib.opt.{name} is not available; {_INSTEAD[name]}")

    return type(name, (), {"__init__": refuse, "__doc__": f"Refused: {name}."})
