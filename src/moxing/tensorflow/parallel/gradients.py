"""Which variables a loss trains, its gradients by way of the scaled loss, and their clipping."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
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
            raise FlagError(f"--{flag}: {text.strip()!r} is not a regular expression: {error}.") from None
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
        raise FlagError(
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


def gradients_of(
    optimizer: Any,
    loss: tf.Tensor,
    variables: Sequence[tf.Variable],
    scale: LossScale,
    spread: bool = False,
    share: Any = 1.0,
) -> GradientPairs:
    """The gradients of a loss, computed from the scaled loss.

    Args:
      optimizer: computes them.
      loss: the loss.
      variables: what it trains.
      scale: scales the loss.
      spread: the model stands on several devices; a gradient is computed where its operation was.
      share: factor of the gradients.
    """
    if not variables:
        raise ValueError(f"The loss {loss.name} has nothing to train: the model has no trainable variable.")
    where = {"colocate_gradients_with_ops": True} if spread else {}
    scaled = scale.scaled(loss)
    # A factor of the loss is one of its gradients, without touching each of them. But an optimizer that does something
    # to its gradients, such as clipping them, must see them as they are.
    by_loss = getattr(type(optimizer), "compute_gradients", None) is tf.train.Optimizer.compute_gradients
    if by_loss:
        scaled = _times(scaled, share)
    pairs = optimizer.compute_gradients(scaled, var_list=list(variables), **where)
    pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    if not by_loss:
        pairs = [(mean([gradient], [share]), variable) for gradient, variable in pairs]
    if not pairs:
        raise ValueError(f"The loss {loss.name} depends on none of the variables it is to train: " + _names(variables))
    return [(scale.unscaled(gradient), variable) for gradient, variable in pairs]


def flat(groups: Sequence[GradientPairs]) -> list[Any]:
    """All gradients of all losses.

    Example:
      >>> flat([[(1.0, 'w'), (2.0, 'b')], [(3.0, 'w')]])
      [1.0, 2.0, 3.0]
    """
    return [gradient for group in groups for gradient, _ in group]


def averaged(towers: Sequence[Sequence[GradientPairs]], weights: Sequence[tf.Tensor | None]) -> list[GradientPairs]:
    """The mean of the towers' gradients: for every loss, pairs with the variables of the first tower.

    Args:
      towers: for every tower and loss the gradients.
      weights: what each tower counts; None: all the same.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     towers = [[[(tf.constant(2.0), 'w')]], [[(tf.constant(5.0), 'w')]]]
      ...     print(session.run([averaged(towers, weights)[0][0][0] for weights in ([None, None], [2, 1])]))
      [np.float32(3.5), np.float32(3.0)]
    """
    return combined(towers, shares_of(weights))


def combined(towers: Sequence[Sequence[GradientPairs]], shares: Sequence[Any]) -> list[GradientPairs]:
    """The sum of the towers' gradients, each multiplied by its share; see `averaged`."""
    if len(towers) == 1:
        return list(towers[0])
    check_same_variables([[[variable for _, variable in pairs] for pairs in losses] for losses in towers])
    return [
        [(mean([gradient for gradient, _ in group], shares), group[0][1]) for group in zip(*of_towers, strict=True)]
        for of_towers in zip(*towers, strict=True)
    ]


def check_same_variables(towers: Sequence[Sequence[Sequence[tf.Variable]]]) -> None:
    """Raises where the losses of two towers train different variables, whose gradients have no mean.

    Args:
      towers: for every tower and loss the variables, as the first tower knows them.
    """
    for index, losses in enumerate(towers):
        for variables, of_first in zip(losses, towers[0], strict=True):
            only = {id(variable): variable for variable in (*variables, *of_first)}
            for key in {id(variable) for variable in variables} & {id(variable) for variable in of_first}:
                del only[key]
            if only:
                raise ValueError(
                    f"The loss of tower {index} and that of the first one do not depend on the same variables; one of "
                    f"them does not on {_names(list(only.values()))} Every call of model_fn must build the same model."
                )


def shares_of(weights: Sequence[Any]) -> list[Any]:
    """What each weight is of their sum.

    Example:
      >>> shares_of([None, None])
      [0.5, 0.5]
    """
    if any(weight is None for weight in weights):
        return [1 / len(weights)] * len(weights)
    numbers = [tf.cast(weight, tf.float32) for weight in weights]
    total = tf.maximum(tf.add_n(numbers), 1.0)
    return [number / total for number in numbers]


def mean(values: Sequence[Any], shares: Sequence[Any]) -> Any:
    """The sum of the values, each multiplied by its share; they may be `tf.IndexedSlices`."""
    if any(isinstance(value, tf.IndexedSlices) for value in values):
        parts = [tf.convert_to_tensor(value) if not isinstance(value, tf.IndexedSlices) else value for value in values]
        if not all(isinstance(part, tf.IndexedSlices) for part in parts):
            return mean([tf.convert_to_tensor(part) for part in parts], shares)
        scaled = [_times(part.values, share) for part, share in zip(parts, shares, strict=True)]
        return tf.IndexedSlices(
            tf.concat(scaled, 0), tf.concat([part.indices for part in parts], 0), parts[0].dense_shape
        )
    if all(isinstance(share, float) for share in shares):
        return _times(tf.add_n(list(values)), shares[0])
    return tf.add_n([_times(value, share) for value, share in zip(values, shares, strict=True)])


def _times(value: tf.Tensor, share: Any) -> tf.Tensor:
    if isinstance(share, float) and share == 1.0:
        return value
    return value * tf.cast(share, value.dtype)


def clipped(pairs: GradientPairs, factor: float = 1.0) -> GradientPairs:
    """The gradients with `--gradient_clip`, times a factor, applied.

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
        raise FlagError(
            f"--gradient_clip_type={kind} --gradient_clip={bound}: both are needed, the type (norm, global_norm or "
            "value) and a bound above 0."
        )
    bound *= factor
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
