"""The key-value store of a process: texts on its TensorFlow server, which any process of the job can read and write."""

from __future__ import annotations

import hashlib

import tensorflow.compat.v1 as tf


class KeyValueStore:
    """The key-value store of one process. It needs no port besides that of the TensorFlow server.

    Args:
      target: the TensorFlow server of this process.
      device: the process that holds the store, for example `/job:worker/task:0`.
    """

    def __init__(self, target: str, device: str) -> None:
        self._graph = tf.Graph()
        with self._graph.as_default(), tf.device(f"{device}/cpu:0"):
            self._key, self._text = tf.placeholder(tf.int64, []), tf.placeholder(tf.string, [])
            table = tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.int64, value_dtype=tf.string, shared_name="moxing/key_value_store"
            )
            self._write = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=self._key, values=self._text)
            self._read = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=self._key, default_value="")
        config = tf.ConfigProto(device_filters=[device])
        self._session = tf.Session(target, self._graph, config)

    def write(self, key: str, text: str) -> None:
        """Writes a text, replacing an earlier one of the same key."""
        self._session.run(self._write, {self._key: _hash(key), self._text: text})

    def read(self, key: str) -> str | None:
        """Returns the text of a key, or None."""
        text = self._session.run(self._read, {self._key: _hash(key)})
        return text.decode() or None

    def close(self) -> None:
        """Closes the connection; the texts stay."""
        self._session.close()


def _hash(key: str) -> int:
    # TensorFlow has no hash table from strings to strings.
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], signed=True)
