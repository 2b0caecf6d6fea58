"""`tf.contrib.data`: transformations for `Dataset.apply`, written with the `tf.data` of today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tensorflow.compat.v1:data",
        "AUTOTUNE Dataset FixedLengthRecordDataset Iterator TFRecordDataset TextLineDataset",
    ),
    (
        "tensorflow.compat.v1:data.experimental",
        "Counter CsvDataset Optional RandomDataset Reducer SqlDataset TFRecordWriter bucket_by_sequence_length "
        "choose_from_datasets dense_to_sparse_batch get_next_as_optional get_single_element group_by_reducer "
        "make_batched_features_dataset make_csv_dataset make_saveable_from_iterator parse_example_dataset "
        "rejection_resample sample_from_datasets scan unique",
    ),
)

__all__ = [
    *_NAMES,
    "batch_and_drop_remainder",
    "enumerate_dataset",
    "group_by_window",
    "ignore_errors",
    "map_and_batch",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "shuffle_and_repeat",
    "sliding_window_batch",
    "unbatch",
]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)

Transformation = Callable[[Any], Any]


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """Batches elements and drops a short last batch, so that the batch size is static."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """Pads and batches elements and drops a short last batch."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Maps elements in parallel, then batches them.

    Args:
      map_func: the function for one element.
      batch_size: number of elements in a batch.
      num_parallel_batches: number of batches to compute in parallel; not together with `num_parallel_calls`.
      drop_remainder: whether to drop a short last batch.
      num_parallel_calls: number of elements to compute in parallel. Default: `tf.data` tunes it.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            f"num_parallel_batches={num_parallel_batches} and num_parallel_calls={num_parallel_calls}: give one of them"
        )

    def apply(dataset: Any) -> Any:
        import tensorflow as tf

        # num_parallel_batches was a guess at the number of calls; today tf.data tunes it.
        calls = tf.data.AUTOTUNE if num_parallel_calls is None else num_parallel_calls
        return dataset.map(map_func, num_parallel_calls=calls).batch(batch_size, drop_remainder=drop_remainder)

    return apply


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """Reads `cycle_length` datasets in parallel, `block_length` elements of each in turn.

    Args:
      map_func: returns a dataset for an element, such as `tf.data.TFRecordDataset` for a file name.
      cycle_length: number of datasets to read in parallel.
      block_length: number of consecutive elements to take from each.
      sloppy: allows an order that depends on timing. The order is fixed here all the same: a training that was
        interrupted could not find its place in another.
      buffer_output_elements: ignored; `tf.data` sizes its buffers itself today.
      prefetch_input_elements: ignored; `tf.data` sizes its buffers itself today.
    """
    del sloppy, buffer_output_elements, prefetch_input_elements
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length, deterministic=True
    )


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """Repeats the dataset `count` times, or forever, and shuffles every epoch differently."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def unbatch() -> Transformation:
    """Splits elements along the first dimension."""
    return lambda dataset: _as_v1(dataset, dataset.unbatch())


def enumerate_dataset(start: int = 0) -> Transformation:
    """Pairs every element with its index."""
    return lambda dataset: _as_v1(dataset, dataset.enumerate(start))


def ignore_errors() -> Transformation:
    """Drops elements whose computation raises an error."""
    return lambda dataset: _as_v1(dataset, dataset.ignore_errors())


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """Groups elements by key and reduces every `window_size` elements of a group to a dataset.

    Args:
      key_func: returns the key of an element, int64.
      reduce_func: returns a dataset for a key and a dataset of consecutive elements with that key.
      window_size: number of elements in a window.
      window_size_func: returns the window size for a key, in place of `window_size`.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError(f"expected either window_size or window_size_func, got {window_size} and {window_size_func}")
    return lambda dataset: _as_v1(
        dataset, dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)
    )


def sliding_window_batch(
    window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1
) -> Transformation:
    """Makes overlapping batches: a window of `window_size` elements moves over the data.

    Args:
      window_size: number of elements in a window; short windows are dropped.
      stride: the earlier name of `window_shift`.
      window_shift: distance between windows. Default: 1.
      window_stride: distance between elements within a window.
    """
    if stride is not None and window_shift is not None:
        raise ValueError(f"stride={stride} and window_shift={window_shift} mean the same: give one of them")
    shift = next((value for value in (window_shift, stride) if value is not None), 1)

    def apply(dataset: Any) -> Any:
        import tensorflow as tf

        def batched(*window: Any) -> Any:
            element = window if len(window) > 1 else window[0]
            batches = tf.nest.map_structure(lambda part: part.batch(window_size, drop_remainder=True), element)
            return tf.data.Dataset.zip(batches)

        windows = dataset.window(window_size, shift, window_stride, drop_remainder=True)
        return _as_v1(dataset, windows.flat_map(batched))

    return apply


def _as_v1(dataset: Any, result: Any) -> Any:
    """Returns the result with the methods of a v1 dataset (`make_one_shot_iterator`), if `dataset` has them."""
    from tensorflow.python.data.ops import dataset_ops

    if isinstance(dataset, dataset_ops.DatasetV1) and not isinstance(result, dataset_ops.DatasetV1):
        return dataset_ops.DatasetV1Adapter(result)
    return result
