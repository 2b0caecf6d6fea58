"""Elastic averaging: when it is chosen, and what it cannot be combined with. No processes here."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.cluster import Role
from moxing.tensorflow.optimizer.wrappers.easgd import is_elastic
from moxing.tensorflow.parallel import Tower, TrainSetup, parameter_server
from moxing.tensorflow.parallel.choice import choose_strategy
from moxing.tensorflow.parallel.easgd import Easgd
from moxing.tf1.graph.run_graph import run_graph

WORKERS = ("a:1", "b:1")
WITH_PS = Role("worker", 1, WORKERS, ps=("c:1",))


@pytest.fixture(autouse=True)
def asynchronous():
    mox.set_flag("sync_replicas", False)


def momentum():
    return tf.train.MomentumOptimizer(0.125, 0.875)


def easgd(opt=momentum, period=3, moving_rate=0.25):
    return mox.get_optimizer_wrapper_fn("easgd", opt, period=period, moving_rate=moving_rate)


@pytest.mark.parametrize(
    ("role", "flags", "message"),
    [
        (Role("worker", 1, WORKERS), {}, r"'easgd'.*--ps_hosts.*--sync_replicas=False: give --ps_hosts"),
        (WITH_PS, {"sync_replicas": True}, "give --sync_replicas=False"),
        (WITH_PS, {"variable_update": "collective"}, "--variable_update=parameter_server instead of collective"),
        (WITH_PS, {"local_parameter_device": "gpu"}, "--local_parameter_device=gpu is for one machine"),
    ],
)
def test_other_layouts_say_what_it_needs(role, flags, message):
    for name, value in flags.items():
        mox.set_flag(name, value)
    with pytest.raises(ValueError, match=message):
        choose_strategy(True, role, elastic=True)


def test_the_strategy():
    strategy = choose_strategy(True, WITH_PS, elastic=True)
    assert type(strategy) is Easgd
    assert (strategy.num_workers, strategy.worker_index, strategy.synchronous) == (2, 1, False)


def test_the_functions_tell():
    plain = mox.get_optimizer_fn("sgd", 0.1)
    batches = mox.get_optimizer_wrapper_fn("batch_gradients", easgd(), num_batches=2)
    assert is_elastic([easgd(), batches, mox.get_optimizer_wrapper_fn("lars", batches)])
    assert not is_elastic([plain, mox.get_optimizer_wrapper_fn("lars", plain)])
    assert not is_elastic(())
    with tf.Graph().as_default():
        assert is_elastic([mox.get_optimizer_wrapper_fn("lars", easgd()())])
    with pytest.raises(ValueError, match=r"optimizer_fn=\[...\]\): number 1 has no easgd"):
        is_elastic([easgd(), plain])


def test_a_function_that_hides_it():
    with run_graph(tf.Graph()):
        strategy = parameter_server.ParameterServer(["/cpu:0"], 2, 0, 1, servers=1, synchronous=False)
        with strategy.scope():
            step = tf.train.get_or_create_global_step()
            with strategy.tower_scope(0):
                loss = tf.nn.l2_loss(tf.get_variable("w", [2]))
            with pytest.raises(ValueError, match="optimizer_fn needs what model_fn builds"):
                strategy.train_op(TrainSetup([Tower([loss], [None])], [lambda: easgd()()], [], step))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (("ema", "easgd"), "ema inside of easgd: averages of a worker's own"),
        (("easgd", "ema"), "ema around easgd"),
        (("easgd", "lookahead"), "lookahead around easgd: .* put lookahead inside"),
        (("easgd", "dgc"), "dgc around easgd"),
        (("dgc", "easgd"), "dgc inside of easgd"),
        (("easgd", "lars", "easgd"), "easgd around easgd"),
    ],
)
def test_orders_that_make_no_sense(order, message):
    fn = momentum
    for name in order:
        fn = mox.get_optimizer_wrapper_fn(name, fn)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        fn()


@pytest.mark.parametrize("inside", [True, False])
def test_workers_that_apply_together_have_no_copies(inside):
    mox.set_flag("worker_hosts", "a:1,b:1")
    order = ("batch_gradients", "easgd") if inside else ("easgd", "batch_gradients")
    fn = momentum
    for name in order:
        more = {"num_batches": 2, "sync_on_apply": True} if name == "batch_gradients" else {}
        fn = mox.get_optimizer_wrapper_fn(name, fn, **more)
    with tf.Graph().as_default(), tf.device("/job:worker/task:1"):
        with pytest.raises(ValueError, match=r"batch_gradients\(sync_on_apply=True\) .* easgd"):
            fn()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"period": 0}, r"easgd\(period=0\): expected an integer from 1"),
        ({"moving_rate": 0}, r"easgd\(moving_rate=0\): expected a number above 0"),
        ({"moving_rate": 1.5}, r"easgd\(moving_rate=1.5\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        mox.get_optimizer_wrapper_fn("easgd", momentum, **arguments)()
