"""Checks the arguments of `mox.run` before anything is built."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import SimpleNamespace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.file.urls import find_remote, local_path
from moxing.tensorflow.executor.specs import ExportKeys, ModeKeys

DEFAULT_SAVE_SECS = 600


class _Default:
    """Marks an argument that was not given, where None has another meaning."""

    def __repr__(self) -> str:
        return "<default>"


DEFAULT = _Default()

#: Steps are counted in signed 64-bit variables.
_MOST_STEPS = 2**63 - 1


@dataclass(frozen=True)
class RunConfig:
    """The arguments of a run: every value checked, defaults filled in."""

    mode: ModeKeys
    input_fn: Callable[..., Any]
    model_fn: Callable[..., Any]
    optimizer_fns: Sequence[Callable[..., Any]]
    output_fn: Callable[..., Any] | None
    batch_size: int | None
    auto_batch: bool
    log_dir: str | None
    max_steps: int
    checkpoint_path: str | None
    log_every: int
    output_every: int
    summary_every: int
    save_secs: float | None
    save_steps: int | None
    export: bool
    inter_mode: ModeKeys | None = None

    @property
    def batches(self) -> bool:
        """True if MoXing makes batches of the samples of `input_fn`."""
        return self.auto_batch and self.batch_size is not None


def check_arguments(arguments: Mapping[str, Any], summaries: bool) -> RunConfig:
    """Checks the arguments of `mox.run`; an error names the argument, the value and what would be right.

    Args:
      arguments: all arguments of `mox.run` by name.
      summaries: False: the flags switch summaries off.
    """
    given = SimpleNamespace(**arguments)
    mode = _mode(given.run_mode)
    if given.fetch_strategy_fn is not None:
        raise ValueError("mox.run(fetch_strategy_fn=...) was never documented and is not supported; leave it out.")
    training = mode is ModeKeys.TRAIN
    output_every = _count("output_every_n_steps", given.output_every_n_steps)
    if mode is ModeKeys.PREDICT:
        if given.output_fn is None:
            raise ValueError("mox.run(run_mode='PREDICT') needs output_fn: a function that takes the outputs.")
        output_every = output_every or 1
    export = _export(given.export_model)
    if export and mode is ModeKeys.PREDICT:
        raise ValueError("mox.run(export_model=...): a model is exported after TRAIN or EVAL, not after PREDICT.")
    if export and given.log_dir is None:
        raise ValueError("mox.run(export_model=..., log_dir=None): log_dir is needed, the model is written there.")
    summary_every = _count("save_summary_steps", given.save_summary_steps) if summaries else 0
    save_secs, save_steps = _save_period(given.save_model_secs, given.save_model_steps)
    return RunConfig(
        mode=mode,
        input_fn=require_callable("input_fn", given.input_fn),
        model_fn=require_callable("model_fn", given.model_fn),
        optimizer_fns=_optimizer_fns(given.optimizer_fn) if training else (),
        output_fn=None if given.output_fn is None else require_callable("output_fn", given.output_fn),
        batch_size=None if given.batch_size is None else _count("batch_size", given.batch_size, least=1),
        auto_batch=bool(given.auto_batch),
        max_steps=_max_steps(given.max_number_of_steps),
        log_every=_count("log_every_n_steps", given.log_every_n_steps),
        output_every=output_every,
        summary_every=summary_every,
        save_secs=save_secs,
        save_steps=save_steps,
        export=export,
        inter_mode=_inter_mode(given.inter_mode, mode),
        log_dir=_path("log_dir", given.log_dir),
        checkpoint_path=_path("checkpoint_path", given.checkpoint_path),
    )


def _mode(run_mode: Any) -> ModeKeys:
    runnable = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT]
    words = ", ".join(f"mox.ModeKeys.{mode.value}" for mode in runnable)
    text = getattr(run_mode, "value", run_mode)
    if text == "EXPORT":
        raise ValueError(
            "mox.run(run_mode='EXPORT') is not possible: a model is exported at the end of TRAIN or EVAL with "
            f"export_model=mox.ExportKeys.TF_SERVING. run_mode is one of {words}."
        )
    for mode in runnable:
        if text == mode.value:
            return mode
    near = difflib.get_close_matches(str(text).upper(), [mode.value for mode in runnable], n=1, cutoff=0.3)
    hint = f" Did you mean mox.ModeKeys.{near[0]}?" if near else ""
    raise ValueError(f"mox.run(run_mode={run_mode!r}): expected one of {words}.{hint}")


def _inter_mode(inter_mode: Any, mode: ModeKeys) -> ModeKeys | None:
    if inter_mode is None:
        return None
    text = getattr(inter_mode, "value", inter_mode)
    if text not in (ModeKeys.EVAL.value, ModeKeys.PREDICT.value):
        raise ValueError(f"mox.run(inter_mode={inter_mode!r}): expected mox.ModeKeys.EVAL, PREDICT or None.")
    if mode is not ModeKeys.TRAIN:
        raise ValueError(
            f"mox.run(run_mode={mode.value!r}, inter_mode={inter_mode!r}): inter_mode is for an evaluation inside "
            "TRAIN; leave it out."
        )
    return ModeKeys(text)


def _optimizer_fns(optimizer_fn: Any) -> list[Callable[..., Any]]:
    if optimizer_fn is None:
        raise ValueError("mox.run(run_mode='TRAIN') needs optimizer_fn, for example mox.get_optimizer_fn('sgd', 0.01).")
    candidates = list(optimizer_fn) if isinstance(optimizer_fn, list | tuple) else [optimizer_fn]
    if not candidates:
        raise ValueError("mox.run(optimizer_fn=[]): expected one function for every loss.")
    for candidate in candidates:
        if isinstance(candidate, tf.train.Optimizer) or (
            not callable(candidate) and hasattr(candidate, "apply_gradients")
        ):
            kind = type(candidate).__name__
            raise TypeError(
                f"mox.run(optimizer_fn=...): '{kind}' object is not callable. optimizer_fn is a function that returns "
                f"the optimizer, because it is built inside the run's own graph: optimizer_fn=lambda: {kind}(...)."
            )
        if isinstance(candidate, str):
            raise TypeError(
                f"mox.run(optimizer_fn={candidate!r}): expected a function, got a str; "
                f"mox.get_optimizer_fn({candidate!r}, learning_rate=0.01) gives one."
            )
        require_callable("optimizer_fn", candidate)
    return candidates


def _count(name: str, value: Any, least: int = 0) -> int:
    if value is None:
        return 0
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or value % 1 or value < least:
        raise ValueError(f"mox.run({name}={value!r}): expected an integer from {least}.")
    return int(value)


def _max_steps(value: Any) -> int:
    if value is None:
        raise ValueError("mox.run(max_number_of_steps=None): expected an integer; sys.maxsize runs to the end of data.")
    if isinstance(value, float) and value == float("inf"):
        return _MOST_STEPS
    steps = min(_count("max_number_of_steps", value), _MOST_STEPS)
    if steps == 0:
        raise ValueError(
            "mox.run(max_number_of_steps=0): the run would do nothing. Give the number of steps, or sys.maxsize to run "
            "to the end of the data."
        )
    return steps


def _save_period(secs: Any, steps: Any) -> tuple[float | None, int | None]:
    for name, value in (("save_model_secs", secs), ("save_model_steps", steps)):
        if value is None or value is DEFAULT:
            continue
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or value < 0:
            raise ValueError(f"mox.run({name}={value!r}): expected a number from 0, or None for never.")
    if secs is DEFAULT and steps is DEFAULT:
        return DEFAULT_SAVE_SECS, None
    if secs is not DEFAULT and secs:
        return float(secs), None
    return None, int(steps) if steps is not DEFAULT and steps else None


def _export(export_model: Any) -> bool:
    if export_model in (None, False):
        return False
    if export_model is True or getattr(export_model, "value", export_model) == ExportKeys.TF_SERVING.value:
        return True
    raise ValueError(f"mox.run(export_model={export_model!r}): expected False or mox.ExportKeys.TF_SERVING.")


def _path(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"mox.run({name}={value!r}): expected a path, got a {type(value).__name__}.")
    text = os.fspath(value)
    if text == "":
        # The original platform passed `--train_url=` for a field that was left empty (pitfall 2-4-3).
        tf.logging.warning("mox.run(%s=''): the path is empty; using None.", name)
        return None
    # A url that no backend serves is an error here, before anything is built.
    if place := find_remote(text, f"mox.run: {name}"):
        return place.url if place.url.endswith("://") else place.url.rstrip("/")
    return local_path(text, f"mox.run: {name}")


def require_callable(name: str, function: Any) -> Callable[..., Any]:
    """Returns `function` if it is callable, else raises an error that names the argument.

    Example:
      >>> require_callable('input_fn', len) is len
      True
    """
    if callable(function):
        return function
    if function is None:
        raise ValueError(f"mox.run({name}=None): {name} is required; give a function.")
    raise TypeError(f"mox.run({name}=...): expected a function, got a {type(function).__name__}: {function!r}.")
