"""The graph of a worker that compresses its gradients, and what does not go together with that. No processes here."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.parallel import Tower, TrainSetup
from moxing.tensorflow.parallel.dgc import Dgc
from moxing.tf1.graph.run_graph import run_graph


class Ring:
    """Connects nobody."""

    def all_reduce(self, values):
        return values

    def all_gather(self, values):
        return [values]


def built(optimizer_fn, connect=Ring, dtype=tf.float32):
    strategy = Dgc(["/cpu:0"], 2, 0, 1, connect)
    with run_graph(tf.Graph()) as graph, strategy.scope():
        step = tf.train.get_or_create_global_step()
        with strategy.tower_scope(0):
            loss = tf.add_n([tf.nn.l2_loss(tf.get_variable(f"w{place}", [place + 1], dtype)) for place in range(3)])
            tower = Tower([loss], [None], samples=tf.constant(4, tf.int64))
        strategy.train_op(TrainSetup([tower], [optimizer_fn], [], step))
    return strategy, graph


def test_nothing_of_tensorflows_collectives_and_no_slots():
    strategy, graph = built(lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True))
    assert not [op for op in graph.get_operations() if op.type == "CollectiveReduce"]
    with graph.as_default():
        names = sorted(variable.op.name for variable in tf.global_variables())
    assert names == ["global_step", "w0", "w1", "w2"]
    assert (strategy._settings[0].momentum, strategy._settings[0].nesterov) == (0.9, True)


def test_half_precision_is_kept_in_single():
    _, graph = built(lambda: tf.train.GradientDescentOptimizer(0.1), dtype=tf.float16)
    traded = [op for op in graph.get_operations() if op.type == "PyFunc"][-1]
    assert {output.dtype for output in traded.outputs} == {tf.float32}


def test_the_wrapper_gives_the_settings():
    mox.set_flag("dgc_momentum_type", "nesterov")
    opt = mox.get_optimizer_fn("sgd", 0.1)
    strategy, _ = built(mox.get_optimizer_wrapper_fn("dgc", opt, momentum=0.5, sparsity_strategy="0.8"))
    (how,) = strategy._settings
    assert (how.momentum, how.nesterov, how.sparsities) == (0.5, True, (0.8,))


def test_adam_without_momentum():
    strategy, _ = built(lambda: tf.train.AdamOptimizer())
    assert strategy._settings[0].momentum == 0


@pytest.mark.parametrize(
    ("optimizer", "flags", "message"),
    [
        ("adam", {"dgc_momentum": 0.9}, "AdamOptimizer with .* expected tf.train.GradientDescentOptimizer"),
        ("sgd", {"loss_scale": "dynamic"}, "--loss_scale=dynamic with --variable_update=distributed_replicated_dgc"),
        ("sgd", {"dgc_sparsity_strategy": "0.9,1.5", "dgc_total_samples": 9}, "--dgc_sparsity_strategy=.*'1.5'"),
    ],
)
def test_what_does_not_go_together(optimizer, flags, message):
    for name, value in flags.items():
        mox.set_flag(name, value)
    with pytest.raises(ValueError, match=message):
        built(mox.get_optimizer_fn(optimizer, 0.1))


def test_momentum_in_micro_steps():
    inner = mox.get_optimizer_fn("momentum", 0.1)
    with pytest.raises(ValueError, match="batch_gradients with .* momentum would count every batch"):
        built(mox.get_optimizer_wrapper_fn("batch_gradients", inner, num_batches=2))
    built(mox.get_optimizer_wrapper_fn("batch_gradients", mox.get_optimizer_fn("sgd", 0.1), num_batches=2))


def test_without_connections():
    with pytest.raises(RuntimeError, match="needs connections between the workers"):
        built(lambda: tf.train.GradientDescentOptimizer(0.1), connect=lambda: None)
