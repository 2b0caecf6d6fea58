"""The feature columns of `tf.contrib.layers`, built with `tf.feature_column`, which replaced them in 1.4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

_columns = tf.compat.v1.feature_column

#: The feature of arrays: the column that `tf.contrib.learn` gave an empty name.
ARRAY = "inputs"


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: Any = tf.float32,
    normalizer: Callable[[Any], Any] | None = None,
) -> Any:
    """A number, or a vector of `dimension` numbers. An empty name is that of the arrays of `tf.contrib.learn`."""
    return _columns.numeric_column(
        column_name or ARRAY, shape=(dimension,), default_value=default_value, dtype=dtype, normalizer_fn=normalizer
    )


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> Any:
    """A number, as the index of its range between `boundaries`."""
    return _columns.bucketized_column(source_column, list(boundaries))


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = tf.string
) -> Any:
    """Categories by their hash. `combiner` is unused: today it is an argument of `embedding_column`."""
    del combiner
    return _columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_integerized_feature(column_name: str, bucket_size: int, combiner: str = "sum") -> Any:
    """Categories that are numbers from 0 to `bucket_size` - 1."""
    del combiner
    return _columns.categorical_column_with_identity(column_name, bucket_size)


def sparse_column_with_keys(
    column_name: str, keys: Sequence[Any], default_value: int = -1, combiner: str = "sum", dtype: Any = tf.string
) -> Any:
    """Categories from a list."""
    del combiner
    return _columns.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = tf.string,
) -> Any:
    """Categories from a file with one category per line."""
    del combiner
    return _columns.categorical_column_with_vocabulary_file(
        column_name, vocabulary_file, vocab_size, num_oov_buckets, None if num_oov_buckets else default_value, dtype
    )


def crossed_column(columns: Sequence[Any], hash_bucket_size: int, combiner: str = "sum") -> Any:
    """Combinations of categories, by their hash."""
    del combiner
    return _columns.crossed_column(list(columns), hash_bucket_size)


def embedding_column(
    sparse_id_column: Any, dimension: int, combiner: str = "mean", initializer: Any = None, trainable: bool = True
) -> Any:
    """A learned vector for every category."""
    return _columns.embedding_column(sparse_id_column, dimension, combiner, initializer, trainable=trainable)


def one_hot_column(sparse_id_column: Any) -> Any:
    """A multi-hot vector: a one for every category that is present."""
    return _columns.indicator_column(sparse_id_column)


def input_from_feature_columns(
    columns_to_tensors: Mapping[str, Any], feature_columns: Sequence[Any], trainable: bool = True
) -> Any:
    """Concatenates the columns of a batch: [batch, sum of their widths]."""
    return _columns.input_layer(dict(columns_to_tensors), list(feature_columns), trainable=trainable)
