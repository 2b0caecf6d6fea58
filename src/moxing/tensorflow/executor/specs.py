"""The user's callbacks: how they are called, the objects that they return, and the result of `mox.run`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.bad_samples import BadSample


class ModeKeys(StrEnum):
    """The modes that callbacks are called in. Members equal their names: `ModeKeys.TRAIN == 'TRAIN'`.

    Example:
      >>> ModeKeys('TRAIN') is ModeKeys.TRAIN
      True
    """

    TRAIN = "TRAIN"
    EVAL = "EVAL"
    PREDICT = "PREDICT"
    EXPORT = "EXPORT"


#: Names of the parameter that gets the mode.
_MODE_NAMES = ("mode", "run_mode")


def call_with_mode(name: str, function: Callable[..., Any], mode: ModeKeys, *first: Any) -> Any:
    """Calls an `input_fn` or `model_fn`. Passes the mode as `mode` or `run_mode` if it declares one, else by position.

    Args:
      name: what the function is called in errors.
      function: the user's function.
      mode: the mode.
      first: positional arguments before the mode.

    Example:
      >>> call_with_mode('model_fn', lambda inputs, run_mode, **kwargs: (inputs, run_mode.value), ModeKeys.EVAL, [1])
      ([1], 'EVAL')
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # implemented in C, without a signature
        return function(*first, mode)
    parameters = signature.parameters
    expected = ", ".join([*(["inputs"] if first else []), "mode", "**kwargs"])
    declared = ", ".join(str(parameter) for parameter in parameters.values())
    for mode_name in _MODE_NAMES:
        if mode_name in parameters:
            try:
                signature.bind(*first, **{mode_name: mode})
            except TypeError as error:
                raise TypeError(f"{name} is declared as ({declared}): {error}; declare it as ({expected}).") from None
            return function(*first, **{mode_name: mode})
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    varargs = any(p.kind == p.VAR_POSITIONAL for p in parameters.values())
    if varargs or len(positional) > len(first):
        return function(*first, mode)
    raise TypeError(f"{name} is declared as ({declared}) and takes no mode; declare it as ({expected}).")


class ExportKeys(StrEnum):
    """The formats that `mox.run(export_model=...)` writes."""

    TF_SERVING = "TF_SERVING"


class ExportSpec:
    """Inputs and outputs of the exported model.

    Args:
      inputs_dict: tensors of `model_fn` to feed, by the names that clients use; its inputs or any others.
      outputs_dict: tensors of `model_fn` to return, by the names that clients use.
      version: name of the directory in `log_dir`, an integer or a string; -1: one more than the highest number there.

    Example:
      >>> with tf.Graph().as_default():
      ...     x = tf.placeholder(tf.float32, [None])
      ...     ExportSpec(inputs_dict={'x': x}, outputs_dict={'y': 2 * x}, version='model').version
      'model'
    """

    def __init__(
        self, inputs_dict: Mapping[str, tf.Tensor], outputs_dict: Mapping[str, tf.Tensor], version: int | str = -1
    ) -> None:
        self.inputs_dict = _tensors("ExportSpec(inputs_dict=...)", inputs_dict)
        self.outputs_dict = _tensors("ExportSpec(outputs_dict=...)", outputs_dict)
        if isinstance(version, bool) or not isinstance(version, int | str) or version == "":
            raise ValueError(f"ExportSpec(version={version!r}): expected an integer, -1 or a directory name.")
        if isinstance(version, int) and version < -1:
            raise ValueError(f"ExportSpec(version={version}): expected -1 (the next number) or a number from 0.")
        if isinstance(version, str) and ("/" in version or version in (".", "..")):
            raise ValueError(f"ExportSpec(version={version!r}): expected one directory name, without '/'.")
        self.version = version


class ModelSpec:
    """What `model_fn` returns.

    Args:
      loss: scalar tensor, or a list of them; required in TRAIN.
      var_scopes: names of the variable scopes that the loss trains; for several losses a list of lists.
      log_info: scalars by name, to log and to write as summaries; required in EVAL.
      output_info: tensors by name, passed to `output_fn`; required in PREDICT.
      export_spec: an `ExportSpec`; required in EXPORT.
      hooks: `AggregativeSessionRunHook` or `tf.train.SessionRunHook` instances.
      compressor_spec: not supported; a warning says so.

    Example:
      >>> with tf.Graph().as_default():
      ...     spec = ModelSpec(loss=tf.constant(1.0), log_info={'loss': tf.constant(1.0)})
      >>> sorted(spec.log_info)
      ['loss']
    """

    def __init__(
        self,
        loss: Any = None,
        var_scopes: Sequence[Any] | None = None,
        log_info: Mapping[str, Any] | None = None,
        output_info: Mapping[str, Any] | None = None,
        export_spec: ExportSpec | None = None,
        hooks: Sequence[Any] | None = None,
        compressor_spec: Any = None,
    ) -> None:
        if compressor_spec is not None:
            tf.logging.warning(
                "ModelSpec(compressor_spec=...): model compression is not part of this MoXing; training without it."
            )
        self.loss = loss
        self.var_scopes = var_scopes
        self.log_info = log_info
        self.output_info = output_info
        self.export_spec = export_spec
        self.hooks = hooks


class InputSpec:
    """Several groups of inputs, which `model_fn` gets by index.

    Args:
      split_to_device: splits one batch between the devices instead of one batch for each.

    Example:
      >>> spec = InputSpec()
      >>> with tf.Graph().as_default():
      ...     spec = spec.new_input([tf.constant(1), tf.constant(2)])
      >>> len(spec.get_input(0))
      2
    """

    def __init__(self, split_to_device: bool = True) -> None:
        self.split_to_device = split_to_device
        self.groups: list[list[tf.Tensor]] = []

    def new_input(self, tensors: Sequence[tf.Tensor]) -> InputSpec:
        """Adds a group of tensors and returns this spec."""
        self.groups.append(list(tensors))
        return self

    def get_input(self, index: int) -> list[tf.Tensor]:
        """The group with the number `index`, from 0."""
        if not 0 <= index < len(self.groups):
            raise IndexError(f"InputSpec.get_input({index}): there are {len(self.groups)} groups, counted from 0.")
        return self.groups[index]


@dataclass(frozen=True)
class RunResult:
    """The result of `mox.run`.

    Attributes:
      global_step: the last global step.
      log_info: the last values; in EVAL the means over all samples.
      checkpoint_path: the last checkpoint that was written (TRAIN) or read; None without `log_dir`.
      export_path: directory of the exported model; None if nothing was exported.
      samples: number of samples that the run processed.
      bad_samples: samples that were skipped because they could not be read: file, offset, reason.
    """

    global_step: int
    log_info: Mapping[str, float] = field(default_factory=dict)
    checkpoint_path: str | None = None
    export_path: str | None = None
    samples: int = 0
    bad_samples: tuple[BadSample, ...] = ()


def _tensors(argument: str, mapping: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    if not isinstance(mapping, Mapping) or not mapping:
        raise ValueError(f"{argument}: expected a dict of tensors by name, got {mapping!r}.")
    tensors = {}
    for name, value in mapping.items():
        if not isinstance(value, tf.Tensor):
            raise TypeError(f"{argument}: {name!r} is {_describe(value)}; expected a tensor built in model_fn.")
        tensors[str(name)] = value
    return tensors


def _describe(value: Any) -> str:
    return f"a {type(value).__module__}.{type(value).__name__}"
