"""Which variables come from which checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.session_config import session_config
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.optimizer.ema import average_in
from moxing.tensorflow.parallel.gradients import patterns, selected
from moxing.tensorflow.parallel.loss_scale import OWN_STATE
from moxing.tf1.variables import saved_name, saved_shape

Restore = Callable[[tf.Session], None]
NameOf = Callable[[tf.Variable], str]


def choose_source(
    config: RunConfig,
    fetch: Callable[[str], None] | None = None,
    named: Callable[[str], checkpoint.Source] = checkpoint.named,
) -> checkpoint.Source | None:
    """The checkpoint a run begins with: that of `log_dir`, else `checkpoint_path`, else none (TRAIN only).

    Args:
      config: the run.
      fetch: brings the files of a checkpoint of `log_dir` there, before they are looked at.
      named: finds the checkpoint that `checkpoint_path` names.
    """
    if config.log_dir is not None:
        found = checkpoint.newest(config.log_dir, config.mode is ModeKeys.TRAIN, fetch)
        if found is not None:
            if config.checkpoint_path is not None:
                tf.logging.info("Ignoring --checkpoint_path because a checkpoint already exists in %s", config.log_dir)
            return found
    if config.checkpoint_path is not None:
        return named(config.checkpoint_path)
    if config.mode is ModeKeys.TRAIN:
        return None
    places = f"log_dir={config.log_dir!r} holds none and " if config.log_dir else ""
    raise ValueError(
        f"mox.run(run_mode={config.mode.value!r}) needs a checkpoint: {places}checkpoint_path is not given. "
        "Give checkpoint_path: the directory of the training, or a checkpoint's prefix."
    )


def make_restore(source: checkpoint.Source, training: bool, with_patterns: bool = True) -> Restore:
    """A function that loads the variables of the current graph from `source`.

    Resuming takes every variable. A warm start takes those that the checkpoint patterns leave in, and in TRAIN starts
    the ones that the checkpoint lacks from their initial values.

    Args:
      source: the checkpoint.
      training: true in TRAIN.
      with_patterns: false takes every variable, whatever the patterns say.
    """
    variables = tf.global_variables()
    chosen, skipped = _sorted_by_patterns(variables) if with_patterns and not source.resume else (variables, [])
    missing = [variable for variable in chosen if saved_name(variable) not in source.shapes]
    # An evaluation may lack the counter: checkpoints made by other tools have none. And the state of a flag that was
    # not given to the run before begins anew.
    needed = [
        variable
        for variable in missing
        if saved_name(variable) != "global_step" and not saved_name(variable).startswith(OWN_STATE)
    ]
    if needed and (source.resume or not training):
        raise ValueError(_missing_message(source, needed, training))
    present = [variable for variable in chosen if saved_name(variable) in source.shapes]
    _check_shapes(source, present)
    name_of = saved_name if training else _averages(source, present)
    cast = _variables_to_cast(source, present, name_of)
    if not source.resume and with_patterns:
        _report(source, present, skipped, missing if training else needed, training)
    rest = [variable for variable in present if not any(variable is other for other in cast)]
    saver = tf.train.Saver(_by_name(rest, name_of)) if rest else None

    def restore(session: tf.Session) -> None:
        if saver is not None:
            saver.restore(session, source.prefix)
        for variable, value in _cast_values(source, cast, name_of):
            # What `Variable.load` does, which says that it is deprecated.
            session.run(variable.initializer, {variable.initializer.inputs[1]: value})

    return restore


def _averages(source: checkpoint.Source, variables: Sequence[tf.Variable]) -> NameOf:
    """The name to read a variable from: its moving average where the training kept one, see `EmaOptimizer`."""
    averages = {id(variable): average_in(source.shapes, variable) for variable in variables}
    if count := sum(name is not None for name in averages.values()):
        tf.logging.info("%d variables are their moving averages over the training.", count)
    return lambda variable: averages[id(variable)] or saved_name(variable)


def _by_name(variables: Sequence[tf.Variable], name_of: NameOf) -> dict[str, list[tf.Variable] | tf.Variable]:
    """For a saver: the variables by their names in the checkpoint, the slices of a partitioned one together."""
    names: dict[str, list[tf.Variable]] = {}
    for variable in variables:
        names.setdefault(name_of(variable), []).append(variable)
    return {name: group if len(group) > 1 else group[0] for name, group in names.items()}


def _variables_to_cast(
    source: checkpoint.Source, variables: Sequence[tf.Variable], name_of: NameOf
) -> list[tf.Variable]:
    """Those of `variables` that have another type in the checkpoint; an error for what is no rounding."""
    saved = source.dtypes
    differing = [variable for variable in variables if saved[name_of(variable)] != variable.dtype.base_dtype]
    wrong = [
        f"  {name}: {saved[name].name} in the checkpoint, {variable.dtype.base_dtype.name} in the model"
        for name, variable in ((name_of(variable), variable) for variable in differing)
        if not _same_kind(saved[name], variable.dtype) or saved_shape(variable) != variable.shape.as_list()
    ]
    if wrong:
        raise ValueError(
            f"{len(wrong)} variables have other types in the checkpoint {source.prefix}, which cannot be cast while it "
            "is read:\n" + "\n".join(wrong) + "\n`moxing checkpoint convert --dtype` writes one with other types."
        )
    if differing:
        first = differing[0]
        tf.logging.info(
            "%d variables have another type in the checkpoint and are cast, such as %s: %s there, %s in the model.",
            len(differing),
            name_of(first),
            saved[name_of(first)].name,
            first.dtype.base_dtype.name,
        )
    return differing


def _same_kind(one: tf.DType, other: tf.DType) -> bool:
    return bool((one.is_floating and other.is_floating) or (one.is_integer and other.is_integer))


def _cast_values(
    source: checkpoint.Source, variables: Sequence[tf.Variable], name_of: NameOf
) -> Iterator[tuple[tf.Variable, np.ndarray]]:
    for variable in variables:
        name, dtype = name_of(variable), variable.dtype.base_dtype
        # By the operation that restores: the reader does not know half precision in the V1 format.
        with tf.Graph().as_default(), tf.Session(config=session_config()) as session:
            (value,) = session.run(
                tf.raw_ops.RestoreV2(
                    prefix=source.prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[source.dtypes[name]]
                )
            )
        with np.errstate(over="ignore"):
            cast = value.astype(dtype.as_numpy_dtype)
        lost = cast != value if dtype.is_integer else np.isinf(cast) & np.isfinite(value)
        if lost.any():
            raise ValueError(
                f"{int(lost.sum())} values of {name} in the checkpoint {source.prefix} do not fit into {dtype.name}, "
                f"its type in the model: they are up to {np.abs(value[lost].astype(np.float64)).max():g}, and "
                f"{dtype.name} ends at {float(dtype.max):g}."
            )
        yield variable, cast


def _sorted_by_patterns(variables: Sequence[tf.Variable]) -> tuple[list[tf.Variable], list[tf.Variable]]:
    """The variables that the checkpoint patterns leave in, and those they leave out."""
    include, exclude = patterns("checkpoint_include_patterns"), patterns("checkpoint_exclude_patterns")
    names = [saved_name(variable) for variable in variables]
    for pattern in (*include, *exclude):
        if not any(pattern.search(name) for name in names):
            tf.logging.warning("The checkpoint pattern %r matches no variable of the model.", pattern.pattern)
    chosen: list[tf.Variable] = []
    skipped: list[tf.Variable] = []
    for variable, name in zip(variables, names, strict=True):
        (chosen if selected(name, include, exclude) else skipped).append(variable)
    return chosen, skipped


def _missing_message(source: checkpoint.Source, missing: Sequence[tf.Variable], training: bool) -> str:
    names = ", ".join(saved_name(variable) for variable in missing[:8])
    more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
    if training:
        remedy = (
            "The model or the optimizer differs from the one that was trained there: give another log_dir (with this "
            "one as checkpoint_path to begin with its variables), or --restart."
        )
    else:
        remedy = "The model differs from the one that was trained; --checkpoint_exclude_patterns leaves variables out."
    return f"The checkpoint {source.prefix} lacks variables of the model: {names}{more}. {remedy}"


def _check_shapes(source: checkpoint.Source, variables: Sequence[tf.Variable]) -> None:
    shapes = source.shapes
    differing = [
        f"  {name}: {list(shapes[name])} in the checkpoint, {shape} in the model"
        for name, shape in ((saved_name(variable), saved_shape(variable)) for variable in variables)
        if list(shapes[name]) != shape
    ]
    if differing:
        remedy = (
            "Give another log_dir, or --restart."
            if source.resume
            else "Leave them out with --checkpoint_exclude_patterns, or use the model that was trained."
        )
        raise ValueError(
            f"{len(differing)} variables have other shapes in the checkpoint {source.prefix}:\n"
            + "\n".join(differing)
            + f"\n{remedy}"
        )


def _report(
    source: checkpoint.Source,
    restored: Sequence[tf.Variable],
    skipped: Sequence[tf.Variable],
    missing: Sequence[tf.Variable],
    training: bool,
) -> None:
    tf.logging.info(
        "From %s: %d variables restored, %d skipped by patterns, %d missing there.",
        source.prefix,
        len(restored),
        len(skipped),
        len(missing),
    )
    if skipped and not training:
        tf.logging.warning(
            "The checkpoint patterns leave %d variables at their initial values, untrained: %s.",
            len(skipped),
            ", ".join(saved_name(variable) for variable in skipped[:8]),
        )
    for word, variables in (("restored", restored), ("skipped", skipped), ("missing", missing)):
        tf.logging.debug("%s: %s", word, ", ".join(saved_name(variable) for variable in variables) or "none")
