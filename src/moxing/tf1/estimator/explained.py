"""Completes short errors of tensorflow-estimator: which argument, which value, and what would be right."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

_PACKAGE = "tensorflow_estimator."
_LONGEST = 120

#: Set on an error that was completed, since calls of Estimators are nested.
_DONE = "_moxing_explained"

#: The start of a message, and what is added to it from the variables of the function that has raised it.
_ADVICE: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    (
        "Missing train_op.",
        lambda found: (
            f"model_fn returned EstimatorSpec(mode={found['mode']!r}, train_op=None): expected an operation, such as "
            "train_op=optimizer.minimize(loss, tf.train.get_global_step())."
        ),
    ),
    (
        "Missing loss.",
        lambda found: (
            f"model_fn returned EstimatorSpec(mode={found['mode']!r}, loss=None): expected a scalar tensor. Only mode "
            "'infer' (ModeKeys.PREDICT) needs no loss."
        ),
    ),
    (
        "model_fn should return an EstimatorSpec.",
        lambda found: (
            f"In mode {found['mode']!r} it returned {_shown(found['model_fn_results'])}: expected "
            "tf.estimator.EstimatorSpec(mode, loss=..., train_op=...)."
        ),
    ),
    (
        "input_fn should return (features, labels) as a len 2 tuple.",
        lambda found: (
            f"It returned {len(found['result'])} values: {_shown(found['result'])}. Put several features in a dict: "
            "({'a': a, 'b': b}, labels)."
        ),
    ),
    (
        "Can not provide both steps and max_steps.",
        lambda found: (
            f"Got steps={found['steps']} and max_steps={found['max_steps']}: give steps for that many more steps, or "
            "max_steps for the global step at which the training ends."
        ),
    ),
    (
        "model_fn (",
        lambda found: (
            "Expected def model_fn(features, labels, mode, params, config); only features is required, and params if "
            "the Estimator gets params."
        ),
    ),
)


@contextmanager
def explained() -> Iterator[None]:
    """Inside, an error of the package says more. Its type and the start of its text stay.

    Example:
      >>> with explained():
      ...     int('7')
      7
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        frame, text = _raised_in(error), str(error)
        if str(frame.f_globals.get("__name__")).startswith(_PACKAGE) and not hasattr(error, _DONE):
            for start, more in _ADVICE:
                if text.startswith(start):
                    error.args = (f"{text} {more(frame.f_locals)}",)
                    setattr(error, _DONE, True)
        raise


def check_input_fn(input_fn: Any) -> None:
    """Raises an error for an `input_fn` that is no function, such as a dataset.

    Example:
      >>> check_input_fn([1, 2])  # doctest: +ELLIPSIS
      Traceback (most recent call last):
      TypeError: unsupported callable: input_fn=[1, 2]: expected a function that returns the data, such as ...
    """
    if not callable(input_fn):
        raise TypeError(
            f"unsupported callable: input_fn={_shown(input_fn)}: expected a function that returns the data, such as "
            "lambda: dataset."
        )


def _raised_in(error: BaseException) -> FrameType:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
