"""The files of an Estimator that hold its graph: `graph.pbtxt`, the `.meta` of each checkpoint, the event file."""

from __future__ import annotations

import os
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.summary.writer.writer_cache import FileWriterCache

#: Constants of at least this many bytes are left out, if only datasets read them.
LARGE_BYTES = 64 * 1024

#: Outputs of operations that hold datasets, iterators and other objects, and no numbers.
_OBJECTS = (tf.variant, tf.resource)


def lean_graph_def(graph: tf.Graph) -> tf.GraphDef:
    """The graph without the constants of 64 kB and more that only datasets read: placeholders take their places.

    What the model reads stays, so `tf.train.import_meta_graph` gives a model that can be restored and run.

    Example:
      >>> numbers = [[1.5] * 100 + [2.5]] * 300
      >>> with tf.Graph().as_default() as graph:
      ...     data = tf.data.Dataset.from_tensor_slices(tf.constant(numbers, name='data'))
      ...     embedding = tf.gather(tf.constant(numbers, name='table'), [1])
      >>> [node.name for node in lean_graph_def(graph).node if node.op == 'Placeholder']
      ['data']
    """
    graph_def = graph.as_graph_def(add_shapes=True)
    for node in graph_def.node:
        if node.op != "Const" or node.ByteSize() < LARGE_BYTES:
            continue
        constant = graph.get_operation_by_name(node.name)
        if _only_datasets_read(constant):
            node.op = "Placeholder"
            del node.attr["value"]
            node.attr["shape"].shape.CopyFrom(constant.outputs[0].shape.as_proto())
    return graph_def


def _only_datasets_read(constant: tf.Operation) -> bool:
    waiting, seen = [constant], {constant}
    while waiting:
        operation = waiting.pop()
        consumers = {consumer for output in operation.outputs for consumer in output.consumers()}
        if not consumers:
            return False
        for consumer in consumers - seen:
            seen.add(consumer)
            if not all(output.dtype in _OBJECTS for output in consumer.outputs):
                waiting.append(consumer)
    return True


def write_lean_graph(hook: tf.train.CheckpointSaverHook) -> None:
    """Makes a hook that saves checkpoints write the graph as `lean_graph_def` has it, and faster.

    The files are those of TensorFlow 1: `graph.pbtxt` and the graph in the event file when the session is created, and
    a `.meta` with every checkpoint. The `.meta` is written before the `checkpoint` file names the checkpoint, not
    after it. A hook of a class that saves in its own way does not change.

    Args:
      hook: the hook; its session is not created yet.
    """
    own = tf.train.CheckpointSaverHook
    if any(getattr(type(hook), name) is not getattr(own, name) for name in ("after_create_session", "_save")):
        return
    _open_event_file(hook._checkpoint_dir)
    writer = _MetaWriter(hook, hook._save_graph_def)

    def after_create_session(session: tf.Session, coord: Any) -> None:
        writer.write_graph()
        step = session.run(hook._global_step_tensor)
        hook._save(session, step)
        hook._timer.update_last_triggered_step(step)

    hook._save_graph_def = False  # from now on the `.meta` is the listener's
    hook._listeners = [writer, *hook._listeners]
    hook.after_create_session = after_create_session


def _open_event_file(directory: str) -> None:
    """Opens the event file that all hooks of a directory share, which TensorFlow would begin with the whole graph."""
    with FileWriterCache._lock:
        if directory not in FileWriterCache._cache:
            FileWriterCache._cache[directory] = tf.summary.FileWriter(directory)


class _MetaWriter(tf.train.CheckpointSaverListener):
    """Writes what a hook would write of the graph.

    Args:
      hook: the hook.
      saves_graph: whether there is a `graph.pbtxt` and a `.meta`.
    """

    def __init__(self, hook: tf.train.CheckpointSaverHook, saves_graph: bool) -> None:
        self._hook, self._saves_graph = hook, saves_graph
        self._meta = b""

    def write_graph(self) -> None:
        """Writes `graph.pbtxt` and the events."""
        hook, graph = self._hook, tf.get_default_graph()
        graph_def = lean_graph_def(graph)
        saver = hook._get_saver()
        saver_def = saver.saver_def if saver else None
        meta = tf.train.export_meta_graph(graph_def=graph_def, saver_def=saver_def)
        directory = hook._checkpoint_dir
        if self._saves_graph:
            self._meta = meta.SerializeToString()
            tf.gfile.MakeDirs(directory)
            # Printed in C, many times faster than `text_format`.
            _write(os.path.join(directory, "graph.pbtxt"), str(graph_def).encode())
        writer = hook._summary_writer
        if hasattr(writer, "_write_plugin_assets"):
            writer._write_plugin_assets(graph)
        writer._add_graph_def(graph_def)
        writer.add_meta_graph(meta)

    def before_save(self, session: Any, global_step_value: int) -> None:
        if self._saves_graph:
            _write(f"{self._hook._save_path}-{global_step_value}.meta", self._meta)


def _write(path: str, content: bytes) -> None:
    """Writes a file, which appears when it is complete; on every file system that TensorFlow knows."""
    directory, name = os.path.split(path)
    unfinished = os.path.join(directory, f".{name}.tmp")
    with tf.gfile.GFile(unfinished, "wb") as stream:
        stream.write(content)
    tf.gfile.Rename(unfinished, path, overwrite=True)
