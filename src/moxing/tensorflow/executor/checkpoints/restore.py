"""Restores variables from a checkpoint: which ones, under which names, with which checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoints.cast import NameOf, cast_values, variables_to_cast
from moxing.tensorflow.executor.checkpoints.choose import ChosenCheckpoint
from moxing.tensorflow.optimizer.wrappers.ema import average_in
from moxing.tensorflow.parallel.gradients import flag_patterns, is_selected
from moxing.tensorflow.parallel.loss_scale import OWN_STATE
from moxing.tf1.graph.variables import saved_name, saved_shape

Restore = Callable[[tf.Session], None]

#: Variables listed in a message; the rest is counted.
_LISTED = 8


def make_restore(checkpoint: ChosenCheckpoint, training: bool, with_patterns: bool = True) -> Restore:
    """A function that restores the variables of the current graph from `checkpoint`.

    A resumed run restores every variable. A warm start restores those that the checkpoint patterns select; in TRAIN,
    variables that are not in the checkpoint keep their initial values.

    Args:
      checkpoint: the checkpoint.
      training: true in TRAIN.
      with_patterns: false restores every variable, whatever the patterns select.
    """
    warm_start = with_patterns and not checkpoint.resume
    selection = _select(checkpoint, by_patterns=warm_start)
    required = [variable for variable in selection.missing if not _is_optional(variable)]
    if required and (checkpoint.resume or not training):
        raise ValueError(_missing_message(checkpoint, required, training))
    _check_shapes(checkpoint, selection.restored)
    name_of = saved_name if training else _averages(checkpoint, selection.restored)
    to_cast = variables_to_cast(checkpoint, selection.restored, name_of)
    if warm_start:
        _log_selection(
            checkpoint, selection if training else _Selection(selection.restored, selection.skipped, required)
        )
        if not training:
            _warn_of_untrained(selection.skipped)
    uncast = [variable for variable in selection.restored if not any(variable is other for other in to_cast)]
    saver = tf.train.Saver(_by_name(uncast, name_of)) if uncast else None

    def restore(session: tf.Session) -> None:
        if saver is not None:
            saver.restore(session, checkpoint.prefix)
        for variable, value in cast_values(checkpoint, to_cast, name_of):
            # Does what `Variable.load` does, without its deprecation warning.
            session.run(variable.initializer, {variable.initializer.inputs[1]: value})

    return restore


@dataclass(frozen=True)
class _Selection:
    """The variables of the graph: restored, skipped by the patterns, missing in the checkpoint."""

    restored: Sequence[tf.Variable]
    skipped: Sequence[tf.Variable]
    missing: Sequence[tf.Variable]


def _select(checkpoint: ChosenCheckpoint, by_patterns: bool) -> _Selection:
    variables = tf.global_variables()
    chosen, skipped = _split_by_patterns(variables) if by_patterns else (variables, [])
    return _Selection(
        restored=[variable for variable in chosen if saved_name(variable) in checkpoint.shapes],
        skipped=skipped,
        missing=[variable for variable in chosen if saved_name(variable) not in checkpoint.shapes],
    )


def _split_by_patterns(variables: Sequence[tf.Variable]) -> tuple[list[tf.Variable], list[tf.Variable]]:
    """The variables that the checkpoint patterns select, and the others."""
    include, exclude = flag_patterns("checkpoint_include_patterns"), flag_patterns("checkpoint_exclude_patterns")
    names = [saved_name(variable) for variable in variables]
    for pattern in (*include, *exclude):
        if not any(pattern.search(name) for name in names):
            tf.logging.warning("The checkpoint pattern %r matches no variable of the model.", pattern.pattern)
    chosen: list[tf.Variable] = []
    skipped: list[tf.Variable] = []
    for variable, name in zip(variables, names, strict=True):
        (chosen if is_selected(name, include, exclude) else skipped).append(variable)
    return chosen, skipped


def _is_optional(variable: tf.Variable) -> bool:
    """True for variables that a checkpoint may lack: the counter (other tools save none), and the state of flags."""
    name = saved_name(variable)
    return name == "global_step" or name.startswith(OWN_STATE)


def _averages(checkpoint: ChosenCheckpoint, variables: Sequence[tf.Variable]) -> NameOf:
    """The names to read: that of the moving average where the training saved one, see `EmaOptimizer`."""
    averages = {id(variable): average_in(checkpoint.shapes, variable) for variable in variables}
    if count := sum(name is not None for name in averages.values()):
        tf.logging.info("Restoring the moving averages of %d variables.", count)
    return lambda variable: averages[id(variable)] or saved_name(variable)


def _by_name(variables: Sequence[tf.Variable], name_of: NameOf) -> dict[str, list[tf.Variable] | tf.Variable]:
    """The variables by their names in the checkpoint, for a saver; the slices of a partitioned variable together."""
    names: dict[str, list[tf.Variable]] = {}
    for variable in variables:
        names.setdefault(name_of(variable), []).append(variable)
    return {name: group if len(group) > 1 else group[0] for name, group in names.items()}


def _missing_message(checkpoint: ChosenCheckpoint, missing: Sequence[tf.Variable], training: bool) -> str:
    more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    if training:
        remedy = (
            "The model or the optimizer differs from the one that was trained there: give another log_dir (with this "
            "one as checkpoint_path to start from its variables), or --restart."
        )
    else:
        remedy = "The model differs from the one that was trained; --checkpoint_exclude_patterns leaves variables out."
    return f"The checkpoint {checkpoint.prefix} lacks variables of the model: {_names(missing)}{more}. {remedy}"


def _check_shapes(checkpoint: ChosenCheckpoint, variables: Sequence[tf.Variable]) -> None:
    shapes = checkpoint.shapes
    different = [
        f"  {name}: {list(shapes[name])} in the checkpoint, {shape} in the model"
        for name, shape in ((saved_name(variable), saved_shape(variable)) for variable in variables)
        if list(shapes[name]) != shape
    ]
    if different:
        remedy = (
            "Give another log_dir, or --restart."
            if checkpoint.resume
            else "Leave them out with --checkpoint_exclude_patterns, or use the model that was trained."
        )
        raise ValueError(
            f"{len(different)} variables have other shapes in the checkpoint {checkpoint.prefix}:\n"
            + "\n".join(different)
            + f"\n{remedy}"
        )


def _log_selection(checkpoint: ChosenCheckpoint, selection: _Selection) -> None:
    groups = {"restored": selection.restored, "skipped": selection.skipped, "missing": selection.missing}
    tf.logging.info(
        "From %s: %d variables restored, %d skipped by patterns, %d missing there.",
        checkpoint.prefix,
        *map(len, groups.values()),
    )
    for group, variables in groups.items():
        tf.logging.debug("%s: %s", group, ", ".join(saved_name(variable) for variable in variables) or "none")


def _warn_of_untrained(skipped: Sequence[tf.Variable]) -> None:
    if skipped:
        tf.logging.warning(
            "The checkpoint patterns leave %d variables at their initial values, untrained: %s.",
            len(skipped),
            _names(skipped),
        )


def _names(variables: Sequence[tf.Variable]) -> str:
    return ", ".join(saved_name(variable) for variable in variables[:_LISTED])
