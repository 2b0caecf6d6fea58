"""Tables of tf.contrib.lookup."""

from __future__ import annotations

from pathlib import Path

from helpers.session_runs import run
from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1


def test_lookup_tables(tmp_path: Path) -> None:
    lookup = contrib.lookup
    words = tmp_path / "words.txt"
    words.write_text("a\nb\nc\n")
    with tf.Graph().as_default():
        table = lookup.HashTable(lookup.KeyValueTensorInitializer(["x", "y"], [7, 8]), -1)
        from_file = lookup.index_table_from_file(str(words), num_oov_buckets=1)
        back = lookup.index_to_string_table_from_tensor(["p", "q"])
        found = run(
            table.lookup(tf.constant(["y", "z"])),
            from_file.lookup(tf.constant(["c", "?"])),
            back.lookup(tf.constant([1], tf.int64)),
        )
    assert [value.tolist() for value in found] == [[8, -1], [2, 3], [b"q"]]
