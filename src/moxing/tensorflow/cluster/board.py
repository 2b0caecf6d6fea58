"""The board of a process: named texts, kept on its TensorFlow server, which any other process can read and write."""

from __future__ import annotations

import hashlib

import tensorflow.compat.v1 as tf


class Board:
    """Named texts on the server of one process.

    Args:
      target: this process's server.
      peer: the name of the process that has the board, such as `worker 0`.
    """

    def __init__(self, target: str, peer: str) -> None:
        job, _, index = peer.partition(" ")
        self._graph = tf.Graph()
        device = f"/job:{job}/task:{index or 0}"
        with self._graph.as_default(), tf.device(f"{device}/cpu:0"):
            self._key, self._text = tf.placeholder(tf.int64, []), tf.placeholder(tf.string, [])
            table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name="moxing/board")
            self._write = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=self._key, values=self._text)
            self._read = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=self._key, default_value="")
        config = tf.ConfigProto(device_filters=[device])
        self._session = tf.Session(target, self._graph, config)

    def write(self, key: str, text: str) -> None:
        """Puts a text there, in place of what stood under `key`."""
        self._session.run(self._write, {self._key: _number(key), self._text: text})

    def close(self) -> None:
        """Ends the connection; the texts stay."""
        self._session.close()

    def read(self, key: str) -> str | None:
        """What stands under `key`, or None."""
        text = self._session.run(self._read, {self._key: _number(key)})
        return text.decode() or None


def _number(key: str) -> int:
    # TensorFlow has no table from texts to texts.
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], signed=True)
