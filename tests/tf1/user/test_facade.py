"""The TensorFlow that user modules see, in real processes: imports of all forms, graph mode, silence."""

import textwrap

import pytest

from helpers.launcher import moxing, warm_moxing
from moxing.tf1.user import facade
from moxing.tf1.user.names import private_paths


def launch(tmp_path, script, *arguments, options=(), start=warm_moxing, **kwargs):
    path = tmp_path / "main.py"
    path.write_text(textwrap.dedent(script))
    return start("run", *options, "main.py", *arguments, cwd=tmp_path, **kwargs)


def test_imports_of_all_forms(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from .net import tf\n")
    (tmp_path / "package" / "net.py").write_text(
        "import tensorflow as tf\nx = tf.placeholder_with_default([1.], [1])\n"
    )
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "library.py").write_text("import tensorflow as tf\n")
    (tmp_path / "site-packages" / "aged.py").write_text("import tensorflow as tf\nslim = tf.contrib.slim\n")
    script = """
        import importlib, sys, types
        import tensorflow as tf
        import tensorflow
        assert tensorflow is tf and isinstance(tf, types.ModuleType) and tf.__name__ == 'tensorflow'
        assert tf.placeholder and tf.get_variable and tf.train.GradientDescentOptimizer
        assert tf.__version__ == tf.VERSION == sys.modules['tensorflow'].__version__
        loaded = {name.partition('.')[0] for name in sys.modules}
        assert 'tf_slim' not in loaded, 'tf_slim is imported when it is used'
        assert 'tf_keras' not in loaded, 'so is Keras'

        import tensorflow.contrib.slim as slim
        import tensorflow.contrib.slim
        from tensorflow.contrib import slim as slim_again
        from tensorflow.contrib.slim import fully_connected
        assert slim is slim_again is tensorflow.contrib.slim is tf.contrib.slim
        assert fully_connected is slim.fully_connected

        from tensorflow.examples.tutorials.mnist import input_data
        import tensorflow.examples.tutorials.mnist.input_data as again
        assert input_data is again and input_data.read_data_sets

        from tensorflow.python.keras.layers import LSTM
        import tensorflow.python.keras as K
        from tensorflow.python.keras import backend, layers
        from tensorflow.keras.models import Model
        assert K.layers.LSTM is LSTM is layers.LSTM is tf.keras.layers.LSTM and Model is tf.keras.Model
        assert backend is tf.keras.backend and tensorflow.python.keras is K
        from tensorflow.python.layers import base
        assert base.Layer and tf.layers.dense

        from tensorflow.python.framework import ops
        import tensorflow.python.framework.ops as ops_again
        from tensorflow.python.ops import math_ops
        from tensorflow.core.framework import graph_pb2
        assert ops is ops_again is tf.python.framework.ops and ops.Graph is tf.Graph

        import tensorflow.compat.v1 as v1
        from tensorflow.compat import v1 as v1_again
        from tensorflow.compat.v1 import placeholder
        assert v1 is v1_again is tf is tf.compat.v1 and placeholder is tf.placeholder and tf.compat.as_str(b'x') == 'x'
        assert tf.compat.v2 is sys.modules['tensorflow']

        from tensorflow import flags, app
        from tensorflow.python.platform import flags as platform_flags, gfile, app as platform_app
        from tensorflow.app import flags as app_flags
        assert flags is tf.flags is tf.app.flags is platform_flags is app_flags and app.run is tf.app.run
        assert platform_app.run is app.run and gfile.Open and tf.gfile.Open

        assert importlib.import_module('tensorflow') is tf
        assert importlib.import_module('tensorflow.contrib.slim') is slim
        from importlib import import_module
        assert import_module('tensorflow.python.framework.ops') is ops
        assert __import__('tensorflow') is tf
        scope = {}
        exec('import tensorflow as tf\\nfrom tensorflow import *', scope)
        assert scope['tf'] is tf and scope['placeholder'] is tf.placeholder and 'contrib' in scope

        import package
        sys.path.append('site-packages')
        import library, aged
        assert package.tf is tf and aged.tf is tf
        assert library.tf is sys.modules['tensorflow'] is not tf and not hasattr(library.tf, 'placeholder')

        for statement, words in {
            'tf.placehodler': ['placehodler', 'placeholder'],
            'tf.contrib.nonsense': ['nonsense'],
            'import tensorflow.nonsense': ["'tensorflow.nonsense'"],
            'import tensorflow.contrib.nonsense': ["'tensorflow.contrib.nonsense'"],
            'from tensorflow.contrib import nonsense': ['nonsense'],
            'from tensorflow import nonsense': ["'tensorflow'", 'nonsense'],
        }.items():
            try:
                exec(statement)
            except (AttributeError, ImportError) as error:
                assert all(word in str(error) for word in words), (statement, str(error))
            else:
                raise AssertionError(statement)
        assert not hasattr(tf, 'nonsense') and 'placeholder' in dir(tf) and 'contrib' in dir(tf)
        print('done')
    """
    result = launch(tmp_path, script, options=("--legacy", "aged"), start=moxing)
    assert result.stdout == "done\n", result.stderr
    assert result.stderr == ""


@pytest.mark.slow
def test_graph_mode_without_noise(tmp_path):
    script = """
        import tensorflow as tf
        import numpy as np
        flags = tf.flags
        flags.DEFINE_string('data_url', 'none', '')
        flags.DEFINE_string('log_dir', 'none', '')
        FLAGS = flags.FLAGS
        assert (FLAGS.data_url, FLAGS.log_dir) == ('', 'mine')

        def main(argv):
            assert argv == ['main.py', '--num_gpus=1'], argv
            assert not tf.executing_eagerly() and tf.resource_variables_enabled() and tf.control_flow_v2_enabled()
            x = tf.placeholder(tf.float32, [None, 3])
            assert x.shape[1].value == 3 and x.get_shape().as_list() == [None, 3]
            y = tf.layers.batch_normalization(tf.layers.dense(x, 4, activation=tf.nn.relu), training=True)
            cell = tf.nn.rnn_cell.BasicLSTMCell(4)
            outputs, _ = tf.nn.dynamic_rnn(cell, tf.expand_dims(y, 1), dtype=tf.float32)
            loss = tf.losses.mean_squared_error(tf.zeros_like(outputs), outputs)
            train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run(train, {x: np.ones([2, 3])})
            tf.logging.warning('my own line')
            return 4

        if __name__ == '__main__':
            tf.app.run()
    """
    result = launch(tmp_path, script, "--data_url=", "--num_gpus=1", "--log_dir=mine", start=moxing)
    assert result.returncode == 4, result.stderr
    assert result.stdout == ""
    assert [line for line in result.stderr.splitlines() if "my own line" not in line] == []
    assert "my own line" in result.stderr


def test_a_script_may_choose_another_mode(tmp_path):
    script = """
        import tensorflow.compat.v1 as tf
        tf.disable_resource_variables()
        assert not tf.resource_variables_enabled()
        tf.enable_v2_behavior()
        tf.enable_eager_execution()
        assert tf.executing_eagerly() and int(tf.constant(1) + 1) == 2
        print('done')
    """
    result = launch(tmp_path, script)
    assert result.stdout == "done\n", result.stderr


@pytest.mark.slow
def test_the_start_up_lines_of_tensorflow_can_be_had(tmp_path):
    import os

    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}
    result = launch(tmp_path, "import tensorflow.python.framework.ops\nprint('done')", start=moxing, env=environment)
    assert result.stdout == "done\n"
    assert result.stderr != ""


def test_what_is_served_is_importable():
    """Every module that the table names exists, so that no old import name leads nowhere."""
    import importlib

    for name, target in facade._SERVED.items():
        if name.startswith("tensorflow.python.keras._impl") or name in private_paths.MODULES:
            continue
        module = importlib.import_module(target)
        assert module is not None, name


@pytest.mark.parametrize("name", ["tensorflow.contrib", "tensorflow.examples.tutorials.mnist"])
def test_names_lead_to_our_modules(name):
    assert facade.module(name).__name__.startswith("moxing.tf1.")
