"""TensorFlow 1 behavior of a whole process."""

import subprocess
import sys
import textwrap
import warnings

import pytest

from moxing.tf1.graph import run_graph, v1_behavior

SCRIPT = """
    import sys
    from moxing.tf1.graph import v1_behavior
    v1_behavior.enable_on_import()
    v1_behavior.enable_on_import()
    assert 'tensorflow' not in sys.modules
    assert sum(isinstance(finder, v1_behavior.TensorFlowFinder) for finder in sys.meta_path) == 1
    import tensorflow as tf
    v1 = tf.compat.v1
    assert not tf.executing_eagerly() and v1.resource_variables_enabled() and v1.control_flow_v2_enabled()
    print(v1.placeholder(tf.float32, [2, 3]).shape[1].value)
"""


def test_it_is_enabled_when_tensorflow_is_imported():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_only_warnings_about_the_old_api_are_hidden():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        v1_behavior.ignore_deprecation_warnings()
        warnings.warn("`tf.layers.dense` is deprecated and will be removed", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="something else"):
            warnings.warn("something else is deprecated", UserWarning, stacklevel=1)


def test_reference_variables_and_the_control_flow_of_tensorflow_1(monkeypatch):
    import tensorflow.compat.v1 as tf

    with run_graph.run_graph(tf.Graph()):
        monkeypatch.setattr(v1_behavior, "_reference_variables", False)
        v1_behavior.use_reference_variables(True)
        try:
            v1_behavior.enable()
            w = tf.get_variable("w", initializer=1.0)
            looped = tf.while_loop(lambda i: i < 3.0, lambda i: i + w, [0.0])
            with tf.Session() as session:
                session.run(w.initializer)
                assert session.run([looped, "w:0"]) == [3.0, 1.0]
            assert w.op.type == "VariableV2" and looped.op.type == "Exit"
        finally:
            v1_behavior.use_reference_variables(False)
            v1_behavior.enable()
    assert tf.resource_variables_enabled() and tf.control_flow_v2_enabled()
