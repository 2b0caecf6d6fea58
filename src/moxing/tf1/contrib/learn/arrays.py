"""Input functions for arrays, and arrays from pandas; `tf.contrib.learn.io`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

__all__ = ["Feed", "ending", "extract_pandas_data", "extract_pandas_labels", "extract_pandas_matrix", "input_function"]

_NAMES = _lazy.names(("moxing.tensorflow.estimator:inputs", "numpy_input_fn pandas_input_fn"))
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)

#: The values of a data frame that are numbers.
_NUMBERS = "biuf"


class Feed(NamedTuple):
    """Arrays to read in batches.

    Attributes:
      x: an array, or arrays by name.
      y: the targets, an array or arrays by name.
      batch_size: by default all rows.
      epochs: how often to read the data; None for ever.
      shuffle: whether to read it in random order.
    """

    x: Any
    y: Any
    batch_size: int | None
    epochs: int | None
    shuffle: bool


def input_function(
    input_fn: Callable[[], Any] | None,
    feed: Feed,
    engineer: Callable[..., Any] | None = None,
    features_of: Callable[[Any], Any] = lambda features: features,
) -> Callable[[], Any]:
    """Returns the input function of `tf.estimator` for an input function or for arrays.

    Args:
      input_fn: the input function; not together with arrays.
      feed: the arrays.
      engineer: changes features and labels.
      features_of: changes the features before that.

    Raises:
      ValueError: both or none of input_fn and x are there.
    """
    if (input_fn is None) == (feed.x is None):
        raise ValueError(f"expected either x or input_fn, got x={type(feed.x).__name__} and input_fn={input_fn!r}")
    if input_fn is None:
        made: Callable[[], Any] = lambda: _dataset(feed)  # noqa: E731
    elif feed.batch_size is not None:
        raise ValueError(f"batch_size={feed.batch_size}: the batches of input_fn have a size already.")
    else:
        made = input_fn

    def read() -> Any:
        found: Any = made()
        if isinstance(found, _datasets()):
            return found.map(lambda *parts: _changed(parts, features_of, engineer))
        parts = found if isinstance(found, tuple | list) else (found,)
        return _changed(tuple(parts), features_of, engineer)

    return read


def ending(read: Callable[[], Any]) -> Callable[[], Any]:
    """Returns an input function that ends after one batch if its batch is a constant, which never ends by itself.

    Args:
      read: an input function that returns features alone.
    """

    def read_to_the_end() -> Any:
        import tensorflow.compat.v1 as tf

        found = read()
        graph = tf.get_default_graph()
        moves = any(op.type.startswith("IteratorGetNext") for op in graph.get_operations())
        if isinstance(found, _datasets()) or moves or graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
            return found
        return tf.data.Dataset.from_tensors(found)

    return read_to_the_end


def _datasets() -> Any:
    import tensorflow.compat.v1 as tf

    return (tf.data.Dataset, tf.compat.v2.data.Dataset)


def _changed(parts: tuple[Any, ...], features_of: Callable[[Any], Any], engineer: Callable[..., Any] | None) -> Any:
    import tensorflow.compat.v1 as tf

    features, labels = (*parts, None)[:2]
    features = tf.nest.map_structure(lambda one: tf.constant(one) if isinstance(one, np.ndarray) else one, features)
    features = features_of(features)
    if engineer is not None:
        features, labels = engineer(features, labels)
    return features if labels is None else (features, labels)


def _dataset(feed: Feed) -> Any:
    import tensorflow.compat.v1 as tf

    data = _arrays(feed.x) if feed.y is None else (_arrays(feed.x), _arrays(feed.y))
    rows = {len(array) for array in tf.nest.flatten(data)}
    if len(rows) != 1:
        raise ValueError(f"x and y must have as many rows as each other, got {sorted(rows)}")
    (number,) = rows
    dataset = tf.data.Dataset.from_tensor_slices(data)
    if feed.shuffle:
        dataset = dataset.shuffle(number)
    return dataset.repeat(feed.epochs).batch(feed.batch_size or number)


def _arrays(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: np.asarray(value) for name, value in values.items()}
    if hasattr(values, "columns") or hasattr(values, "values"):
        return np.asarray(values.values)
    if not hasattr(values, "__len__"):
        values = list(values)
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def extract_pandas_data(data: Any) -> Any:
    """Returns the numbers of a data frame as an array of floats, and anything else unchanged.

    Raises:
      ValueError: a column has no numbers.
    """
    if not hasattr(data, "dtypes") or not hasattr(data, "columns"):
        return data
    bad = [str(name) for name, kind in zip(data.columns, data.dtypes, strict=True) if kind.kind not in _NUMBERS]
    if bad:
        raise ValueError(
            f"Data types for extracting pandas data must be int, float, or bool; columns: {', '.join(bad)}"
        )
    return data.values.astype(float)


def extract_pandas_matrix(data: Any) -> Any:
    """Returns a data frame as an array, and anything else unchanged."""
    return data.values if hasattr(data, "columns") else data


def extract_pandas_labels(labels: Any) -> Any:
    """Returns the labels of a data frame of one column, or of a series, as an array.

    Raises:
      ValueError: there are several columns, or no numbers.
    """
    if hasattr(labels, "columns"):
        if len(labels.columns) > 1:
            raise ValueError(f"Only one column for labels is allowed, got {list(labels.columns)}.")
        return extract_pandas_data(labels).astype(labels.dtypes.iloc[0])
    return labels.values if hasattr(labels, "values") else labels
