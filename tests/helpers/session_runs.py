"""Runs tensors of a test in a session of its own."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def run(*fetches: Any) -> list[Any]:
    """The values of tensors, with variables and tables initialised."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(list(fetches))
