"""Variables that have another type in the checkpoint than in the model."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoints.cast import cast_values, variables_to_cast
from moxing.tensorflow.executor.checkpoints.choose import find_checkpoint


def name_of(variable):
    return variable.op.name


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of `w`, 1 and 1e6 in float32, and `n`, 3 in int64."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", initializer=np.float32([1, 1e6]))
        tf.get_variable("n", initializer=np.int64(3))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    return find_checkpoint(str(tmp_path / "model.ckpt"))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_only_other_types_are_cast(checkpoint):
    same = tf.get_variable("w", [2])
    other = tf.get_variable("n", [], tf.int32)
    assert variables_to_cast(checkpoint, [same, other], name_of) == [other]
    ((variable, value),) = cast_values(checkpoint, [other], name_of)
    assert variable is other
    assert value == 3 and value.dtype == np.int32


def test_another_kind_of_type_is_an_error(checkpoint):
    variable = tf.get_variable("n", [], tf.float32)
    with pytest.raises(
        ValueError, match=r"1 variables have other types(.|\n)*n: int64 in the checkpoint, float32 in the"
    ):
        variables_to_cast(checkpoint, [variable], name_of)


def test_a_value_that_does_not_fit_is_an_error(checkpoint):
    variable = tf.get_variable("w", [2], tf.float16)
    with pytest.raises(ValueError, match=r"1 values of w .* do not fit into float16.*1e\+06, the limit is 65504"):
        list(cast_values(checkpoint, [variable], name_of))
