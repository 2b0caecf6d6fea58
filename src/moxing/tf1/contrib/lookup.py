"""`tf.contrib.lookup`: tables from keys to values, in a graph."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tensorflow.python.ops.lookup_ops:",
        "HashTable IdTableWithHashBuckets InitializableLookupTableBase KeyValueTensorInitializer LookupInterface "
        "MutableHashTable MutableDenseHashTable=DenseHashTable TextFileIdTableInitializer TextFileIndex "
        "TextFileInitializer TextFileStringTableInitializer index_table_from_file index_table_from_tensor "
        "index_to_string_table_from_file index_to_string_table_from_tensor",
    ),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
