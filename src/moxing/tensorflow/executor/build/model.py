"""Calls `model_fn` and checks what it returns; `mox.get_collection`, which sees what this call added to the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.specs import ExportSpec, ModeKeys, ModelSpec, call_with_mode
from moxing.tensorflow.executor.var_scope import var_scope
from moxing.tensorflow.nets.parts.precision import model_dtype
from moxing.tf1.graph.half_precision import half_precision

#: The types of variables by the value of `--var_dtype`.
_STORED_TYPES = {None: None, "fp32": tf.float32, "fp16": tf.float16}

#: Collection with the lengths of all collections before `model_fn` was called.
_SNAPSHOT_KEY = "moxing/collections_before_tower"


@dataclass
class Model:
    """The checked `ModelSpec` of one tower.

    Attributes:
      losses: the losses, one or several.
      var_scopes: for every loss the variable scopes that it trains, None for all.
      log_info: scalar tensors by name.
      output_info: tensors by name.
      export_spec: what to export, or None.
      hooks: the user's hooks.
      updates: operations that `model_fn` added to run with every step, such as batch-norm averages.
    """

    losses: list[tf.Tensor]
    var_scopes: list[Sequence[str] | None]
    log_info: dict[str, tf.Tensor]
    output_info: dict[str, tf.Tensor]
    export_spec: ExportSpec | None
    hooks: list[Any]
    updates: list[tf.Operation]

    @property
    def run_hooks(self) -> list[RunHook]:
        """The hooks that the run itself serves."""
        return [hook for hook in self.hooks if isinstance(hook, RunHook)]


def build_model(config: RunConfig, mode: ModeKeys, inputs: Any) -> Model:
    """Builds the model of one tower in the current graph."""
    stored = _STORED_TYPES[FLAGS.get("var_dtype")]
    with tower_collections(), ExitStack() as types:
        # Exported models compute in float32: a server may run on a CPU.
        if FLAGS.get("use_fp16") and mode is not ModeKeys.EXPORT:
            types.enter_context(half_precision(model_dtype()))
        if stored is not None:
            types.enter_context(var_scope(stored))
        spec = call_with_mode("model_fn", config.model_fn, mode, inputs)
        updates = get_collection(tf.GraphKeys.UPDATE_OPS)
    if not isinstance(spec, ModelSpec):
        raise TypeError(
            f"model_fn returned {spec!r} in mode {mode}: expected a mox.ModelSpec, "
            "for example `return mox.ModelSpec(loss=loss, log_info={'loss': loss})`."
        )
    losses = _losses(spec.loss)
    model = Model(
        losses=losses,
        var_scopes=_var_scopes(spec.var_scopes, losses, isinstance(spec.loss, list | tuple)),
        log_info=_log_info(spec.log_info),
        output_info=_output_info(spec.output_info),
        export_spec=_export_spec(spec.export_spec),
        hooks=_hooks(spec.hooks),
        updates=updates,
    )
    _check_mode(config, mode, model)
    return model


@contextmanager
def tower_collections() -> Iterator[None]:
    """Inside, `get_collection` returns only what is added to the graph from here on."""
    graph = tf.get_default_graph()
    keys = [key for key in graph.get_all_collection_keys() if key != _SNAPSHOT_KEY]
    snapshots = graph.get_collection_ref(_SNAPSHOT_KEY)
    snapshots.append({key: len(graph.get_collection_ref(key)) for key in keys})
    try:
        yield
    finally:
        snapshots.pop()


def get_collection(key: str) -> list[Any]:
    """Like `tf.get_collection`, but only with what this tower's `model_fn` added.

    Args:
      key: name of the collection.

    Example:
      >>> with tf.Graph().as_default():
      ...     tf.add_to_collection('mine', 1)
      ...     get_collection('mine')
      [1]
    """
    graph = tf.get_default_graph()
    snapshots = graph.get_collection_ref(_SNAPSHOT_KEY)
    before = snapshots[-1].get(key, 0) if snapshots else 0
    return graph.get_collection(key)[before:]


def _check_mode(config: RunConfig, mode: ModeKeys, model: Model) -> None:
    if mode is ModeKeys.TRAIN:
        if not model.losses:
            raise ValueError("model_fn returned a ModelSpec without loss in mode TRAIN: give ModelSpec(loss=...).")
        if len(model.losses) != len(config.optimizer_fns):
            raise ValueError(
                f"model_fn returned {len(model.losses)} losses, and mox.run was given {len(config.optimizer_fns)} "
                "optimizer_fn: there must be one for every loss."
            )
    if mode is ModeKeys.EVAL and not model.log_info:
        raise ValueError("model_fn returned a ModelSpec without log_info in mode EVAL: EVAL reports its means.")
    if mode is ModeKeys.PREDICT and not model.output_info:
        raise ValueError("model_fn returned a ModelSpec without output_info in mode PREDICT: output_fn receives it.")
    if mode is ModeKeys.EXPORT and model.export_spec is None:
        raise ValueError("model_fn returned a ModelSpec without export_spec in mode EXPORT: give mox.ExportSpec(...).")


def _losses(loss: Any) -> list[tf.Tensor]:
    if loss is None:
        return []
    many = isinstance(loss, list | tuple)
    losses = list(loss) if many else [loss]
    for index, value in enumerate(losses):
        name = f"ModelSpec(loss=...)[{index}]" if many else "ModelSpec(loss=...)"
        losses[index] = _scalar(name, value, "tf.reduce_mean(loss)")
    return losses


def _var_scopes(var_scopes: Any, losses: Sequence[Any], many: bool) -> list[Sequence[str] | None]:
    if var_scopes is None:
        return [None] * len(losses)
    if isinstance(var_scopes, str):
        raise TypeError(f"ModelSpec(var_scopes={var_scopes!r}): expected a list of scope names, [{var_scopes!r}].")
    if not many:
        return [list(var_scopes)]
    if len(var_scopes) != len(losses) or any(isinstance(scopes, str) for scopes in var_scopes):
        raise ValueError(
            f"ModelSpec(var_scopes={var_scopes!r}): with {len(losses)} losses expected a list of {len(losses)} lists "
            "of scope names, one for every loss."
        )
    return [None if scopes is None else list(scopes) for scopes in var_scopes]


def _log_info(log_info: Any) -> dict[str, tf.Tensor]:
    if log_info is None:
        return {}
    if not isinstance(log_info, Mapping):
        raise TypeError(f"ModelSpec(log_info={log_info!r}): expected a dict of scalar tensors by name.")
    return {str(name): _scalar(f"log_info[{name!r}]", value, "tf.reduce_mean(...)") for name, value in log_info.items()}


def _scalar(name: str, value: Any, remedy: str) -> tf.Tensor:
    if not isinstance(value, tf.Tensor | tf.compat.v2.Variable | int | float | np.generic):
        raise TypeError(f"{name} is {value!r}: expected a scalar tensor.")
    tensor = tf.convert_to_tensor(value)
    if tensor.shape.rank is None:
        return tf.reshape(tensor, [])
    if tensor.shape.rank != 0:
        raise ValueError(f"{name} has shape {tensor.shape}: expected a scalar, shape (). Reduce it with {remedy}.")
    if not (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool):
        raise TypeError(f"{name} has type {tensor.dtype.name}: expected a number.")
    return tensor


def _output_info(output_info: Any) -> dict[str, tf.Tensor]:
    if output_info is None:
        return {}
    if not isinstance(output_info, Mapping):
        raise TypeError(f"ModelSpec(output_info={output_info!r}): expected a dict of tensors by name.")
    return {str(name): _tensor(f"output_info[{name!r}]", value) for name, value in output_info.items()}


def _tensor(name: str, value: Any) -> tf.Tensor:
    try:
        if value is None:
            raise TypeError("None")
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}: expected a tensor.") from None


def _export_spec(export_spec: Any) -> ExportSpec | None:
    if export_spec is None or isinstance(export_spec, ExportSpec):
        return export_spec
    raise TypeError(f"ModelSpec(export_spec={export_spec!r}): expected a mox.ExportSpec(inputs_dict=, outputs_dict=).")


def _hooks(hooks: Any) -> list[Any]:
    if hooks is None:
        return []
    if not isinstance(hooks, list | tuple):
        raise TypeError(f"ModelSpec(hooks={hooks!r}): expected a list of hooks.")
    for hook in hooks:
        if not isinstance(hook, tf.train.SessionRunHook):
            raise TypeError(
                f"ModelSpec(hooks=[...]): {hook!r} is not a hook; expected a mox.AggregativeSessionRunHook or a "
                "tf.train.SessionRunHook."
            )
    return list(hooks)
