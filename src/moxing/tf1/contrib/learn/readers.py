"""Batches of examples from files by the queues of TensorFlow 1, and `run_n`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["read_batch_examples", "read_batch_features", "read_batch_record_features", "run_n"]


def read_batch_examples(
    file_pattern: Any,
    batch_size: int,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """Returns a tensor of `batch_size` records, read by queue runners.

    Args:
      file_pattern: a pattern, or a list of them.
      batch_size: number of records; the last batch may be smaller.
      reader: returns a reader, such as `tf.TFRecordReader`.
      randomize_input: whether to shuffle files and records.
      num_epochs: how often to read the files; None for ever. Needs tf.local_variables_initializer.
      queue_capacity: number of records in the queue.
      num_threads: number of threads that read.
      read_batch_size: number of records that a thread reads at a time.
      parse_fn: applied to every record.
      name: of the operations.
      seed: of the shuffling.

    Raises:
      ValueError: no file matches, or the queue is smaller than a batch.
    """
    patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
    files = sorted({path for pattern in patterns for path in tf.gfile.Glob(pattern)})
    if not files:
        raise ValueError(f"file_pattern={file_pattern!r}: no files match.")
    if not 0 < batch_size < queue_capacity:
        raise ValueError(f"batch_size={batch_size} must be between 1 and queue_capacity={queue_capacity}.")
    with tf.name_scope(name, "read_batch_examples"):
        queue = tf.train.string_input_producer(files, num_epochs, shuffle=randomize_input, seed=seed)
        read = [_records(reader(), queue, read_batch_size, parse_fn) for _ in range(num_threads)]
        settings = {"batch_size": batch_size, "capacity": queue_capacity, "enqueue_many": True}
        settings["allow_smaller_final_batch"] = num_epochs is not None
        if not randomize_input:
            return tf.train.batch_join(read, **settings)
        return tf.train.shuffle_batch_join(read, min_after_dequeue=queue_capacity // 2, seed=seed, **settings)


def _records(reader: Any, queue: Any, count: int, parse_fn: Callable[[Any], Any] | None) -> list[Any]:
    values = reader.read_up_to(queue, count)[1]
    if parse_fn is None:
        return [values]
    return [tf.map_fn(parse_fn, values, dtype=tf.string)]


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    **options: Any,
) -> Any:
    """Returns the parsed features of `batch_size` examples by name."""
    renamed = {"reader_num_threads": "num_threads"}
    given = {renamed.get(key, key): value for key, value in options.items()}
    serialized = read_batch_examples(
        file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, **given
    )
    return tf.parse_example(serialized, features)


def read_batch_record_features(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> Any:
    """Returns the parsed features of `batch_size` examples of TFRecord files."""
    return read_batch_features(
        file_pattern,
        batch_size,
        features,
        tf.TFRecordReader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads=reader_num_threads,
        name=name,
    )


def run_n(
    output_dict: dict[str, Any], feed_dict: Any = None, restore_checkpoint_path: str | None = None, n: int = 1
) -> list[dict[str, Any]]:
    """Runs tensors `n` times in a new session and returns their values.

    Args:
      output_dict: the tensors by name.
      feed_dict: fed every time.
      restore_checkpoint_path: variables come from it; without it they are initialised.
      n: how often.

    Example:
      >>> with tf.Graph().as_default():
      ...   [{key: int(value) for key, value in one.items()} for one in run_n({'two': tf.constant(2)}, n=2)]
      [{'two': 2}, {'two': 2}]
    """
    graph = tf.nest.flatten(output_dict)[0].graph
    with graph.as_default(), tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        if restore_checkpoint_path:
            tf.train.Saver().restore(session, restore_checkpoint_path)
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            return [session.run(output_dict, feed_dict) for _ in range(n)]
        finally:
            coordinator.request_stop()
            coordinator.join(threads, ignore_live_threads=True)
