"""One step of RNN cells, for comparisons with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


def one_step(cell: Any, inputs: Any, state: Any) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """The output and the state of a cell with random variables, and these by their names without the first scope."""
    random = np.random.RandomState(5)
    with tf.Graph().as_default(), tf.Session() as session:
        # Cells are built in this graph: `cell` is a function.
        output, new_state = cell()(_constants(inputs), _constants(state))
        variables = tf.global_variables()
        names = [variable.op.name.partition("/")[2] for variable in variables]
        session.run(tf.global_variables_initializer())
        values = {}
        for name, variable in zip(names, variables, strict=True):
            values[name] = random.uniform(0.1, 0.9, variable.shape.as_list()).astype(np.float32)
            variable.load(values[name], session)
        return *session.run([output, new_state]), values


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _constants(values: Any) -> Any:
    return tf.nest.map_structure(tf.constant, values)
