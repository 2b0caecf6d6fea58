"""The variables that a loss trains, the gradients of the scaled loss, and their means over towers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.parallel.loss_scale import LossScale

GradientPairs = list[tuple[Any, tf.Variable]]


def flag_patterns(flag: str) -> list[re.Pattern[str]]:
    """Compiles the regular expressions of a comma-separated flag.

    Example:
      >>> FLAGS.set('trainable_include_patterns', 'logits,conv[12]')
      >>> [pattern.pattern for pattern in flag_patterns('trainable_include_patterns')]
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


def is_selected(name: str, include: Sequence[re.Pattern[str]], exclude: Sequence[re.Pattern[str]]) -> bool:
    """Whether a name matches a pattern of `include` (or `include` is empty) and no pattern of `exclude`.

    Example:
      >>> is_selected('net/logits/weights', [], [re.compile('logits')])
      False
    """
    if include and not any(pattern.search(name) for pattern in include):
        return False
    return not any(pattern.search(name) for pattern in exclude)


def trainable_variables() -> list[tf.Variable]:
    """The trainable variables of the graph, without those that the trainable patterns of the flags freeze."""
    include, exclude = flag_patterns("trainable_include_patterns"), flag_patterns("trainable_exclude_patterns")
    trainable = tf.trainable_variables()
    chosen = [variable for variable in trainable if is_selected(variable.op.name, include, exclude)]
    if trainable and not chosen:
        raise FlagError(
            "--trainable_include_patterns / --trainable_exclude_patterns leave no variable to train; the model has "
            + _names(trainable)
        )
    if include or exclude:
        tf.logging.info(
            "The trainable patterns train %d of %d variables and freeze %d.",
            len(chosen),
            len(trainable),
            len(trainable) - len(chosen),
        )
    return chosen


def variables_in_scopes(variables: Sequence[tf.Variable], scopes: Sequence[str] | None) -> list[tf.Variable]:
    """The variables in one of the variable scopes; every scope must contain at least one."""
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
                f"ModelSpec(var_scopes=...): no trainable variable is in scope {scope!r}; the model has "
                + _names(variables)
            )
        chosen.extend(variable for variable in found if not any(variable is other for other in chosen))
    return chosen


def loss_gradients(
    optimizer: Any,
    loss: tf.Tensor,
    variables: Sequence[tf.Variable],
    scale: LossScale | None,
    spread: bool = False,
    share: Any = 1.0,
) -> GradientPairs:
    """Computes the gradients of a loss, with loss scaling.

    Args:
      optimizer: computes the gradients.
      loss: the loss.
      variables: the variables that it trains.
      scale: the loss scale.
      spread: the model is on several devices; compute every gradient on the device of its operation.
      share: factor of the gradients.
    """
    if not variables:
        raise ValueError(f"The loss {loss.name} has no variable to train: the model has no trainable variable.")
    options = {"colocate_gradients_with_ops": True} if spread else {}
    scaled = loss if scale is None else scale.scaled(loss)
    # Scaling the loss by the share scales all gradients at once. But an optimizer with a compute_gradients of its own,
    # which may clip for example, must see the gradients unscaled.
    scale_loss = getattr(type(optimizer), "compute_gradients", None) is tf.train.Optimizer.compute_gradients
    if scale_loss:
        scaled = _times(scaled, share)
    pairs = optimizer.compute_gradients(scaled, var_list=list(variables), **options)
    pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    if not scale_loss:
        pairs = [(weighted_sum([gradient], [share]), variable) for gradient, variable in pairs]
    if not pairs:
        raise ValueError(f"The loss {loss.name} depends on none of the variables it is to train: " + _names(variables))
    return pairs if scale is None else [(scale.unscaled(gradient), variable) for gradient, variable in pairs]


def flatten(groups: Sequence[GradientPairs]) -> list[Any]:
    """The gradients of all losses in one list.

    Example:
      >>> flatten([[(1.0, 'w'), (2.0, 'b')], [(3.0, 'w')]])
      [1.0, 2.0, 3.0]
    """
    return [gradient for group in groups for gradient, _ in group]


def average_gradients(
    towers: Sequence[Sequence[GradientPairs]], weights: Sequence[tf.Tensor | None]
) -> list[GradientPairs]:
    """The mean of the towers' gradients, for every loss, paired with the variables of the first tower.

    Args:
      towers: the gradients, for every tower and loss.
      weights: the weight of each tower; None: equal weights.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     towers = [[[(tf.constant(2.0), 'w')]], [[(tf.constant(5.0), 'w')]]]
      ...     print(session.run([average_gradients(towers, weights)[0][0][0] for weights in ([None, None], [2, 1])]))
      [np.float32(3.5), np.float32(3.0)]
    """
    return sum_gradients(towers, normalize_weights(weights))


def sum_gradients(towers: Sequence[Sequence[GradientPairs]], shares: Sequence[Any]) -> list[GradientPairs]:
    """The sum of the towers' gradients, each multiplied by its share; see `average_gradients`."""
    if len(towers) == 1:
        return list(towers[0])
    check_same_variables([[[variable for _, variable in pairs] for pairs in losses] for losses in towers])
    return [
        [
            (weighted_sum([gradient for gradient, _ in group], shares), group[0][1])
            for group in zip(*of_towers, strict=True)
        ]
        for of_towers in zip(*towers, strict=True)
    ]


def check_same_variables(towers: Sequence[Sequence[Sequence[tf.Variable]]]) -> None:
    """Raises an error if the losses of two towers train different variables.

    Args:
      towers: for each tower and loss, the variables that it trains, as those of the first tower.
    """
    for index, losses in enumerate(towers):
        for variables, of_first in zip(losses, towers[0], strict=True):
            only = {id(variable): variable for variable in (*variables, *of_first)}
            for key in {id(variable) for variable in variables} & {id(variable) for variable in of_first}:
                del only[key]
            if only:
                raise ValueError(
                    f"The loss of tower {index} and that of tower 0 do not depend on the same variables: only one of "
                    f"them depends on {_names(list(only.values()))} Every call of model_fn must build the same model."
                )


def normalize_weights(weights: Sequence[Any]) -> list[Any]:
    """Divides weights by their sum; None stands for equal weights.

    Example:
      >>> normalize_weights([None, None])
      [0.5, 0.5]
    """
    if any(weight is None for weight in weights):
        return [1 / len(weights)] * len(weights)
    numbers = [tf.cast(weight, tf.float32) for weight in weights]
    total = tf.maximum(tf.add_n(numbers), 1.0)
    return [number / total for number in numbers]


def weighted_sum(values: Sequence[Any], shares: Sequence[Any]) -> Any:
    """The sum of the values, each multiplied by its share; values may be `tf.IndexedSlices`."""
    if any(isinstance(value, tf.IndexedSlices) for value in values):
        parts = [tf.convert_to_tensor(value) if not isinstance(value, tf.IndexedSlices) else value for value in values]
        if not all(isinstance(part, tf.IndexedSlices) for part in parts):
            return weighted_sum([tf.convert_to_tensor(part) for part in parts], shares)
        scaled = [_times(part.values, share) for part, share in zip(parts, shares, strict=True)]
        return tf.IndexedSlices(
            tf.concat(scaled, 0), tf.concat([part.indices for part in parts], 0), parts[0].dense_shape
        )
    if all(isinstance(share, float) and share == shares[0] for share in shares):
        # One multiplication of the sum instead of one for each value.
        return _times(tf.add_n(list(values)), shares[0])
    return tf.add_n([_times(value, share) for value, share in zip(values, shares, strict=True)])


def _times(value: tf.Tensor, share: Any) -> tf.Tensor:
    if isinstance(share, float) and share == 1.0:
        return value
    return value * tf.cast(share, value.dtype)


def _names(variables: Sequence[tf.Variable], most: int = 8) -> str:
    names = [variable.op.name for variable in variables]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more + "."
