"""Private modules and names of TensorFlow 1: each one is imported and used."""

from __future__ import annotations

import textwrap

import pytest

from helpers.launcher import output_of
from moxing.tf1.contrib import _finder
from moxing.tf1.user import facade
from moxing.tf1.user.names import private_paths

#: Parts of tf.contrib that the table points to.
NEEDED = {"moxing.tf1.contrib.legacy_seq2seq": "legacy_seq2seq"}
#: Names that exist only together with the cells of tf.contrib.rnn.
WRAPPERS = {"EmbeddingWrapper", "InputProjectionWrapper", "OutputProjectionWrapper"}


def test_every_module_and_every_name_of_the_tables_is_there():
    missing = []
    for name, target in private_paths.MODULES.items():
        if NEEDED.get(target, _finder.PARTS[0]) in _finder.PARTS:
            facade.import_name(name, ["__name__"])
    for name, table in private_paths.NAMES.items():
        module = facade.import_name(name, ["__name__"])
        missing += [f"{name}.{key}" for key in table.keys() - WRAPPERS if not hasattr(module, key)]
        assert set(table) <= set(dir(module))
    assert missing == []


@pytest.mark.parametrize("name", sorted(private_paths.GONE))
def test_what_is_gone_says_what_to_use(name):
    package, _, last = name.rpartition(".")
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{name}.x': .*[.]$"):
        facade.import_name(f"{name}.x")
    with pytest.raises(ImportError, match="[Uu]se|repository"):
        facade.import_name(package, [last])


PROGRAM = """
    import sys
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.util import nest
    import tensorflow.python.util.nest as nest_again
    assert nest is nest_again and nest.is_sequence([1]) and not nest.is_sequence('a')
    assert nest.flatten([[1], 2]) == [1, 2]
    from tensorflow.python import pywrap_tensorflow, debug as tf_debug
    assert tf_debug.has_inf_or_nan
    from tensorflow.python.framework import ops, dtypes, graph_util, tensor_shape, tensor_util, function, common_shapes
    from tensorflow.python.ops import array_ops, control_flow_ops, gen_nn_ops, init_ops, math_ops, metrics_impl, rnn
    from tensorflow.python.ops import rnn_cell, rnn_cell_impl, variable_scope as vs, variables, spectral_ops
    from tensorflow.python.ops.rnn_cell_impl import _linear, _Linear, RNNCell, LSTMStateTuple
    from tensorflow.python.ops.control_flow_ops import with_dependencies
    from tensorflow.python.training import moving_averages, training_util, session_run_hook, saver, training_ops
    from tensorflow.python.training import checkpoint_management
    from tensorflow.python.training.checkpointable import base as checkpointable
    from tensorflow.python.platform import gfile, flags, app, resource_loader, tf_logging as logging
    from tensorflow.python.client import device_lib, timeline
    from tensorflow.python.layers.core import Dense
    from tensorflow.python.layers import base as base_layer
    from tensorflow.python.saved_model import builder, signature_constants, tag_constants, loader
    from tensorflow.python.tools import freeze_graph, inspect_checkpoint, optimize_for_inference_lib
    from tensorflow.python.eager import context
    assert context.in_graph_mode() and issubclass(Dense, base_layer._Layer)
    assert device_lib.list_local_devices()[0].device_type == 'CPU' and training_ops.apply_adam
    # The classes are those of the public API.
    assert RNNCell is tf.nn.rnn_cell.RNNCell and LSTMStateTuple is tf.nn.rnn_cell.LSTMStateTuple
    assert rnn_cell.LSTMCell is tf.contrib.rnn.LSTMCell and ops.Tensor is tf.Tensor
    assert tensor_shape.matrix(2, 3).as_list() == [2, 3] and tensor_shape.scalar().as_list() == []

    x = tf.placeholder(ops.convert_to_tensor(1.0).dtype, [None, 3])
    with vs.variable_scope('linear'):
        y = _linear([x, x], 2, True, 1.0)
    with vs.variable_scope('again'):
        layer = _Linear(x, 2, False, kernel_initializer=init_ops.ones_initializer())
        z = layer(x)
    branch = control_flow_ops.cond(math_ops.reduce_sum(x, reduction_indices=[0, 1], keep_dims=False) > 0,
                                   lambda: array_ops.stack([1, 2]), lambda: array_ops.zeros([2], tf.int32))
    loop = control_flow_ops.while_loop(lambda i: i < 5, lambda i: i + 2, [0])
    quotient = metrics_impl._safe_div(array_ops.ones([3]), tf.constant([2.0, 0.0, -1.0]), 'q')
    spectrum = spectral_ops.rfft(tf.ones([4]))

    @ops.RegisterGradient('GuidedRelu')
    def guided(op, grad):
        return tf.where(grad > 0, gen_nn_ops._relu_grad(grad, op.outputs[0]), tf.zeros_like(grad))

    with tf.get_default_graph().gradient_override_map({'Relu': 'GuidedRelu'}):
        slope, = tf.gradients(tf.nn.relu(z) * [1.0, -1.0], x)

    @function.Defun(tf.float32)
    def twice(value):
        return value * 2

    state = tf.nn.rnn_cell.BasicLSTMCell(2).zero_state(1, tf.float32)
    assert isinstance(state, rnn_cell_impl.LSTMStateTuple)
    doubled = twice(z)
    frozen = tf.identity(z, 'frozen')
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {x: [[1.0, 2.0, 3.0]]}
        assert session.run([branch, loop], feed)[0].tolist() == [1, 2]
        assert np.allclose(session.run(quotient), [0.5, 0, 0]) and session.run(spectrum).shape == (3,)
        got, kernel, bias = session.run([y, *tf.trainable_variables('linear')], feed)
        assert np.allclose(got, np.array([[1, 2, 3, 1, 2, 3]]) @ kernel + bias, atol=1e-5) and bias.tolist() == [1, 1]
        assert session.run(z, feed).tolist() == [[6, 6]] and session.run(doubled, feed).tolist() == [[12, 12]]
        assert session.run(slope, feed).tolist() == [[1, 1, 1]]
        graph_def = tf.get_default_graph().as_graph_def()
        constants = graph_util.convert_variables_to_constants(session, graph_def, ['frozen'])
        path = saver.Saver().save(session, './model')
    assert any(node.op == 'Const' for node in constants.node)
    assert not any('Variable' in node.op or node.op == 'VarHandleOp' for node in constants.node)
    assert checkpoint_management.latest_checkpoint('.') == saver.latest_checkpoint('.') == path
    for module in (pywrap_tensorflow, tf.pywrap_tensorflow, tf.train):
        assert module.NewCheckpointReader(path).get_variable_to_shape_map()['again/kernel'] == [3, 2]
    # What a program changes in a module reaches TensorFlow.
    logging.set_verbosity(logging.ERROR)
    tf.python.control_flow_ops = tf
    math_ops.mine = 1
    assert sys.modules['tensorflow.python.ops.math_ops'].mine == 1
    print('done')
"""


def test_a_program_that_uses_private_names(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(PROGRAM))
    assert output_of(script) == "done\n"
