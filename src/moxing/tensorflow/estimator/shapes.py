"""Compares the shapes of the model with those in the checkpoint, before it is restored."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tf1.graph.variables import saved_name, saved_shape


def check_shapes(model_dir: str, scaffold: tf.train.Scaffold) -> None:
    """Raises an error if a variable has another shape than in the newest checkpoint.

    Reference variables, those of TensorFlow 1, made this an error. A resource variable takes any shape from a
    checkpoint. A saver of the program's own is not checked: it may restore other variables.

    Args:
      model_dir: the directory of the checkpoints.
      scaffold: that of the training.

    Raises:
      tf.errors.InvalidArgumentError: the shapes differ.
    """
    prefix = tf.train.latest_checkpoint(model_dir)
    if prefix is None or scaffold.saver is not None or tf.get_collection(tf.GraphKeys.SAVERS):
        return
    shapes = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    for variable in tf.global_variables():
        name = saved_name(variable)
        if name in shapes and variable.shape.is_fully_defined() and shapes[name] != saved_shape(variable):
            raise tf.errors.InvalidArgumentError(
                None,
                None,
                f"Restoring from checkpoint failed: {name} has shape {shapes[name]} in {prefix} and shape "
                f"{saved_shape(variable)} in model_fn, a mismatch between the model now and the one that was saved. "
                "Use the model_fn of the checkpoint, or give another model_dir.",
            )
