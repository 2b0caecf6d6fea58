"""The arguments that `Dataset.map` had in TensorFlow 1.2 and 1.3."""

from __future__ import annotations

import functools
from typing import Any


def install() -> None:
    """Lets `Dataset.map` take `num_threads` and `output_buffer_size`. Calling it again changes nothing.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> install()
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     numbers = tf.data.Dataset.range(3).map(lambda i: i + 1, num_threads=2, output_buffer_size=4)
      ...     print(session.run(tf.data.make_one_shot_iterator(numbers.batch(3)).get_next()))
      [1 2 3]
    """
    import tensorflow.compat.v1 as tf

    kind = tf.data.Dataset
    if not hasattr(kind.map, "_moxing_original"):
        kind.map = _with_old_arguments(kind.map)


def _with_old_arguments(original: Any) -> Any:
    @functools.wraps(original)
    def map(self: Any, map_func: Any, *args: Any, **kwargs: Any) -> Any:
        threads = kwargs.pop("num_threads", None)
        buffer = kwargs.pop("output_buffer_size", None)
        if threads is not None:
            if args or kwargs.get("num_parallel_calls") is not None:
                raise ValueError(f"num_threads={threads!r} and num_parallel_calls: give one of them")
            kwargs["num_parallel_calls"] = threads
        mapped = original(self, map_func, *args, **kwargs)
        return mapped if buffer is None else mapped.prefetch(buffer)

    map._moxing_original = original  # type: ignore[attr-defined]
    return map
