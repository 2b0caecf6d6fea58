"""Exports a SavedModel after a run: writes a temporary directory, loads it back, compares it, then renames it."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.raw.labels import write_labels
from moxing.tensorflow.executor.build.inputs import Inputs
from moxing.tensorflow.executor.build.model import Model, build_model
from moxing.tensorflow.executor.checkpoints.choose import ChosenCheckpoint
from moxing.tensorflow.executor.checkpoints.disk import explain
from moxing.tensorflow.executor.checkpoints.restore import make_restore
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
from moxing.tensorflow.executor.loop.session import open_session, session_config
from moxing.tensorflow.executor.specs import ExportSpec, ModeKeys
from moxing.tensorflow.nets.parts.precision import HALF
from moxing.tf1.graph.run_graph import quiet_tensorflow, run_graph

SIGNATURE = "predict_object"

#: How far outputs of two builds of the same graph may differ: relative and absolute tolerance.
_TOLERANCE, _HALF_TOLERANCE = (1e-3, 1e-4), (2e-2, 1e-2)


class ExportError(RuntimeError):
    """The exported model gives other results than the trained one."""


def check_version(log_dir: str, spec: ExportSpec | None) -> None:
    """Raises an AssertionError if the version of the export exists already. Removes leftovers of killed processes."""
    _remove_leftovers(log_dir)
    if spec is not None and spec.version != -1:
        _target(log_dir, spec)


def export_model(
    config: RunConfig,
    inputs: Inputs,
    checkpoint: ChosenCheckpoint,
    batch: Sequence[Any] | None,
    labels: Mapping[int, str] | None = None,
) -> str:
    """Exports the model with the variables of `checkpoint` into `log_dir` and returns the directory.

    Args:
      config: the run.
      inputs: the inputs of the run's graph, for shapes and types.
      checkpoint: the checkpoint.
      batch: a batch to compare the exported model on; None if there is none.
      labels: class names, saved with the model.
    """
    log_dir = str(config.log_dir)
    try:
        with quiet_tensorflow():
            target = _export_compared(config, log_dir, inputs, checkpoint, batch, labels)
    except (OSError, tf.errors.OpError) as error:
        explain(error, "The exported model", log_dir, checkpoint.prefix)
        raise
    tf.logging.info("SavedModel written to: %s", os.path.join(target, "saved_model.pb"))
    return target


def _export_compared(
    config: RunConfig,
    log_dir: str,
    inputs: Inputs,
    checkpoint: ChosenCheckpoint,
    batch: Sequence[Any] | None,
    labels: Mapping[int, str] | None,
) -> str:
    with run_graph(tf.Graph()):
        placeholders = _placeholders(config, inputs)
        model = build_model(config, ModeKeys.EXPORT, inputs.structure.arrange(placeholders))
        spec = model.export_spec
        if spec is None:  # build_model checks it
            raise ValueError("model_fn returned no export_spec.")
        target = _target(log_dir, spec)
        with _temporary_directory(log_dir, target) as temporary:
            with _restored_session(checkpoint) as session:
                _write(session, spec, temporary)
                values = _values(session, placeholders, model, batch)
            if values is not None:
                _compare_loaded(temporary, values)
                _compare_evaluation(config, inputs, checkpoint, batch, values)
            if labels is not None:
                # TensorFlow's directory for files that servers and clients read, not the graph.
                os.makedirs(os.path.join(temporary, "assets.extra"))
                write_labels(os.path.join(temporary, "assets.extra", "labels.txt"), labels)
            _sync_tree(temporary)
            os.rename(temporary, target)
    return target


@contextmanager
def _temporary_directory(log_dir: str, target: str) -> Iterator[str]:
    """The path of a directory beside `target`, which is removed after an error."""
    temporary = os.path.join(log_dir, f".export-{os.getpid()}-{os.path.basename(target)}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _remove_leftovers(log_dir: str) -> None:
    """Removes what killed processes have left of exports. Those of a living process, or of the last hour, stay."""
    for name in os.listdir(log_dir) if os.path.isdir(log_dir) else []:
        found, path = re.fullmatch(r"\.export-(\d+)-.+", name), os.path.join(log_dir, name)
        with suppress(OSError):
            # A process of this number may run on another machine.
            if found and not os.path.exists(f"/proc/{found[1]}") and time.time() - os.path.getmtime(path) > 3600:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _restored_session(checkpoint: ChosenCheckpoint) -> Iterator[tf.Session]:
    """A session of the current graph with the variables of a checkpoint."""
    # Without patterns: they are for the checkpoint that the run started from, this is its last one.
    restore = make_restore(checkpoint, training=False, with_patterns=False) if tf.global_variables() else None
    with open_session(restore, [], UserHooks([])) as session:
        yield session


def _target(log_dir: str, spec: ExportSpec) -> str:
    version: int | str = spec.version
    if version == -1:
        names = os.listdir(log_dir) if os.path.isdir(log_dir) else []
        version = max((int(name) for name in names if name.isdecimal()), default=0) + 1
    target = os.path.join(log_dir, str(version))
    if os.path.exists(target):
        raise AssertionError(
            f"Export directory already exists. Please specify a different export directory: {target}. "
            "Give ExportSpec another version, or -1 for the next free number."
        )
    return target


def _placeholders(config: RunConfig, inputs: Inputs) -> list[Any]:
    """Placeholders with the shapes of the inputs; the batch dimension that `auto_batch` added is unknown."""
    return [_placeholder(tensor, any_batch_size=config.batches) for tensor in inputs.towers[0]]


def _placeholder(tensor: Any, any_batch_size: bool) -> Any:
    shape = tensor.shape
    if any_batch_size and shape.rank:
        shape = [None, *shape.as_list()[1:]]
    if isinstance(tensor, tf.SparseTensor):
        return tf.sparse_placeholder(tensor.dtype, shape)
    return tf.placeholder(tensor.dtype, shape, name="input")


def _write(session: tf.Session, spec: ExportSpec, directory: str) -> None:
    signature = tf.saved_model.build_signature_def(
        inputs={name: tf.saved_model.build_tensor_info(tensor) for name, tensor in spec.inputs_dict.items()},
        outputs={name: tf.saved_model.build_tensor_info(tensor) for name, tensor in spec.outputs_dict.items()},
        method_name=tf.saved_model.signature_constants.PREDICT_METHOD_NAME,
    )
    default = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    builder = tf.saved_model.Builder(directory)
    builder.add_meta_graph_and_variables(
        session,
        [tf.saved_model.tag_constants.SERVING],
        signature_def_map={SIGNATURE: signature, default: signature},
        main_op=tf.tables_initializer() if tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS) else None,
        clear_devices=True,
        strip_default_attrs=True,
    )
    builder.save()


def _values(
    session: tf.Session, placeholders: Sequence[Any], model: Model, batch: Sequence[Any] | None
) -> dict[str, dict[str, np.ndarray]] | None:
    """Inputs and outputs of the model on one batch; None if they cannot be compared."""
    spec = model.export_spec
    if batch is None or spec is None:
        return None
    feed = dict(zip(placeholders, batch, strict=True))
    fetches = {"inputs": spec.inputs_dict, "outputs": spec.outputs_dict}
    try:
        first, second = session.run(fetches, feed), session.run(fetches, feed)
    except tf.errors.InvalidArgumentError as error:
        missing = re.search(r"must feed a value for placeholder tensor '([^']+)'", error.message)
        if missing is None:
            raise
        _explain_placeholder(missing[1], session, spec, feed)
        return None
    if _differences(first["outputs"], second["outputs"]):
        tf.logging.warning("The outputs of the exported model are random: cannot compare them with the trained model.")
        return None
    return first


def _explain_placeholder(name: str, session: tf.Session, spec: ExportSpec, feed: dict[Any, Any]) -> None:
    """Warns of a placeholder in `inputs_dict` that no output needs; raises an error if an output needs it."""
    try:
        session.run(spec.outputs_dict, feed)
    except tf.errors.InvalidArgumentError:
        raise ExportError(
            f"An output of ExportSpec depends on the placeholder {name!r}, which is no input that model_fn was "
            "given; nothing was exported. Build the outputs from the argument inputs of model_fn."
        ) from None
    tf.logging.warning(
        "ExportSpec(inputs_dict) has the placeholder %r, on which no output depends: the exported model ignores this "
        "input, and cannot be compared with the trained model.",
        name,
    )


def _compare_loaded(directory: str, values: dict[str, dict[str, np.ndarray]]) -> None:
    with tf.Graph().as_default(), tf.Session(config=session_config()) as session:
        meta = tf.saved_model.load(session, [tf.saved_model.tag_constants.SERVING], directory)
        signature = meta.signature_def[SIGNATURE]
        feed = {signature.inputs[name].name: value for name, value in values["inputs"].items()}
        outputs = session.run({name: info.name for name, info in signature.outputs.items()}, feed)
    differing = _differences(values["outputs"], outputs)
    if differing:
        raise ExportError(
            "The exported model, loaded back, gives other results than the trained one "
            f"({'; '.join(differing)}); nothing was exported. Outputs must depend on inputs_dict alone."
        )


def _compare_evaluation(
    config: RunConfig,
    inputs: Inputs,
    checkpoint: ChosenCheckpoint,
    batch: Sequence[Any] | None,
    values: dict[str, dict[str, np.ndarray]],
) -> None:
    """Compares with `model_fn` in mode EVAL; a difference may be intended and is a warning only."""
    try:
        with run_graph(tf.Graph()):
            placeholders = _placeholders(config, inputs)
            model = build_model(config, ModeKeys.EVAL, inputs.structure.arrange(placeholders))
            if model.export_spec is None or set(model.export_spec.outputs_dict) != set(values["outputs"]):
                return
            with _restored_session(checkpoint) as session:
                feed = dict(zip(placeholders, batch or (), strict=True))
                outputs = session.run(model.export_spec.outputs_dict, feed)
            tolerance = _HALF_TOLERANCE if _computes_in_half(session.graph) else _TOLERANCE
    except (ValueError, TypeError, tf.errors.OpError) as error:
        tf.logging.warning("Could not compare the exported model with mode EVAL: %s", str(error).splitlines()[0])
        return
    differing = _differences(values["outputs"], outputs, tolerance)
    if differing:
        tf.logging.warning(
            "The exported model differs from model_fn in mode EVAL (%s). If that is not intended, look for code that "
            "depends on the mode, such as batch normalisation left in training mode.",
            "; ".join(differing),
        )


def _computes_in_half(graph: tf.Graph) -> bool:
    return any(output.dtype in HALF for operation in graph.get_operations() for output in operation.outputs)


def _differences(
    expected: dict[str, Any], actual: dict[str, Any], tolerance: tuple[float, float] = _TOLERANCE
) -> list[str]:
    """Describes every output that differs by more than rounding errors."""
    differences = []
    for name, value in expected.items():
        left, right = np.asarray(value), np.asarray(actual[name])
        if left.dtype == tf.bfloat16.as_numpy_dtype:  # not a floating type for NumPy
            left, right = left.astype(np.float32), right.astype(np.float32)
        if left.shape != right.shape:
            differences.append(f"{name}: shapes {left.shape} and {right.shape}")
        elif np.issubdtype(left.dtype, np.floating):
            relative, absolute = tolerance
            # A value near 0 has the rounding error of the large values that it was computed from.
            largest = np.abs(left[np.isfinite(left)]).max(initial=1.0)
            if not np.allclose(left, right, relative, absolute * largest, equal_nan=True):
                differences.append(f"{name}: differs by up to {np.nanmax(np.abs(left - right)):.3g}")
        elif not np.array_equal(left, right):
            differences.append(f"{name}: differs")
    return differences


def _sync_tree(directory: str) -> None:
    """Flushes every file to disk, so that the export is complete after the rename."""
    for folder, _, names in os.walk(directory):
        for name in names:
            handle = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
