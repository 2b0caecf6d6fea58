"""Which variables a loss trains, its gradients by way of the scaled loss, and their clipping."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.parallel.loss_scale import LossScale

GradientPairs = list[tuple[Any, tf.Variable]]


def patterns(flag: str) -> list[re.Pattern[str]]:
    """The regular expressions of a comma-separated flag.

    Example:
      >>> FLAGS.set('trainable_include_patterns', 'logits,conv[12]')
      >>> [pattern.pattern for pattern in patterns('trainable_include_patterns')]
      ['logits', 'conv[12]']
      >>> FLAGS.set('trainable_include_patterns', None)
    """
    compiled = []
    for text in (FLAGS.get(flag) or "").split(","):
        if not text.strip():
            continue
        try:
            compiled.append(re.compile(text.strip()))
        except re.error as error:
            raise ValueError(f"--{flag}: {text.strip()!r} is not a regular expression: {error}.") from None
    return compiled


def selected(name: str, include: Sequence[re.Pattern[str]], exclude: Sequence[re.Pattern[str]]) -> bool:
    """True when a name matches one of `include` (or there is none) and none of `exclude`.

    Example:
      >>> selected('net/logits/weights', [], [re.compile('logits')])
      False
    """
    if include and not any(pattern.search(name) for pattern in include):
        return False
    return not any(pattern.search(name) for pattern in exclude)


def trainable_variables() -> list[tf.Variable]:
    """The graph's trainable variables that the trainable patterns leave in."""
    include, exclude = patterns("trainable_include_patterns"), patterns("trainable_exclude_patterns")
    everything = tf.trainable_variables()
    chosen = [variable for variable in everything if selected(variable.op.name, include, exclude)]
    if everything and not chosen:
        raise ValueError(
            "--trainable_include_patterns / --trainable_exclude_patterns leave no variable to train; the model has "
            + _names(everything)
        )
    if include or exclude:
        tf.logging.info(
            "The trainable patterns train %d of %d variables and freeze %d.",
            len(chosen),
            len(everything),
            len(everything) - len(chosen),
        )
    return chosen


def in_scopes(variables: Sequence[tf.Variable], scopes: Sequence[str] | None) -> list[tf.Variable]:
    """Those of `variables` that stand in one of the variable scopes; every scope must hold at least one."""
    if scopes is None:
        return list(variables)
    chosen: list[tf.Variable] = []
    for scope in scopes:
        if not isinstance(scope, str):
            raise TypeError(f"ModelSpec(var_scopes=...): expected names of variable scopes, got {scope!r}.")
        prefix = scope.rstrip("/") + "/"
        found = [variable for variable in variables if (variable.op.name + "/").startswith(prefix)]
        if not found:
            raise ValueError(
                f"ModelSpec(var_scopes=...): no trainable variable stands in scope {scope!r}; the model has "
                + _names(variables)
            )
        chosen.extend(variable for variable in found if not any(variable is other for other in chosen))
    return chosen


def gradients_of(optimizer: Any, loss: tf.Tensor, variables: Sequence[tf.Variable], scale: LossScale) -> GradientPairs:
    """The gradients of a loss, computed from the scaled loss."""
    if not variables:
        raise ValueError(f"The loss {loss.name} has nothing to train: the model has no trainable variable.")
    pairs = optimizer.compute_gradients(scale.scaled(loss), var_list=list(variables))
    pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    if not pairs:
        raise ValueError(f"The loss {loss.name} depends on none of the variables it is to train: " + _names(variables))
    return [(scale.unscaled(gradient), variable) for gradient, variable in pairs]


def clipped(pairs: GradientPairs) -> GradientPairs:
    """The gradients with `--gradient_clip` applied.

    Example:
      >>> FLAGS.set('gradient_clip_type', 'value'); FLAGS.set('gradient_clip', 1.0)
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     print(session.run([gradient for gradient, _ in clipped([(tf.constant([0.5, -3.0]), None)])]))
      [array([ 0.5, -1. ], dtype=float32)]
      >>> FLAGS.set('gradient_clip_type', None); FLAGS.set('gradient_clip', None)
    """
    kind, bound = FLAGS.get("gradient_clip_type"), FLAGS.get("gradient_clip")
    if kind is None and bound is None:
        return pairs
    if kind is None or bound is None or bound <= 0:
        raise ValueError(
            f"--gradient_clip_type={kind} --gradient_clip={bound}: both are needed, the type (norm, global_norm or "
            "value) and a bound above 0."
        )
    gradients, variables = zip(*pairs, strict=True)
    if kind == "global_norm":
        short, _ = tf.clip_by_global_norm(gradients, bound)
    elif kind == "norm":
        short = [tf.clip_by_norm(gradient, bound) for gradient in gradients]
    else:
        short = [tf.clip_by_value(gradient, -bound, bound) for gradient in gradients]
    return list(zip(short, variables, strict=True))


def _names(variables: Sequence[tf.Variable], most: int = 8) -> str:
    names = [variable.op.name for variable in variables]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more + "."
