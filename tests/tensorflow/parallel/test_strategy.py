"""What every strategy inherits, and strategies that a script registers itself."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import Role
from moxing.tensorflow.executor.loop.session import session_config
from moxing.tensorflow.optimizer.step_context import current_context
from moxing.tensorflow.parallel import (
    Local,
    Strategy,
    StrategyContext,
    Tower,
    TrainSetup,
    choose_strategy,
    register_strategy,
)
from moxing.tensorflow.parallel.collective import Collective
from moxing.tensorflow.parallel.loss_scale import FixedLossScale
from moxing.tensorflow.parallel.strategy import find_strategy, no_ring


def test_a_strategy_for_one_process():
    strategy = Strategy.create(StrategyContext("x", ["/cpu:0", "/cpu:1"]))
    assert (strategy.num_towers, strategy.num_workers, strategy.worker_index) == (2, 1, 0)
    assert strategy.is_chief and strategy.owns_variables and not strategy.synchronous
    assert strategy.sync_ops() == strategy.worker_sync_ops() == []
    assert strategy.tower_variables(("a", "b")) == ["a", "b"]
    config = session_config(strategy.devices)
    strategy.configure(config)
    assert config.device_count["CPU"] == 2
    with strategy.scope(), strategy.local_device():
        strategy.request_stop(None, 1)
        strategy.propose(None, 1)


def test_a_subclass_says_where_and_how():
    strategy = Strategy(["/cpu:0"])
    with pytest.raises(NotImplementedError):
        strategy.tower_device(0)
    with pytest.raises(NotImplementedError):
        strategy.train_op(TrainSetup([], [], [], None))


def test_the_weight_of_a_step():
    strategy = Strategy(["/cpu:0", "/cpu:1"])
    with tf.Graph().as_default(), tf.Session() as session:
        with strategy.step_weight(tf.constant(6.0), batch_size=4, workers=3):
            assert session.run(current_context().weight) == 6 / (4 * 2 * 3)
        with strategy.step_weight(None, batch_size=4):
            assert current_context().weight is None


@pytest.mark.parametrize(
    ("wrapped", "sizes", "known"), [(True, [None, 3], True), (True, [2, 3], False), (False, [None], False)]
)
def test_samples_are_counted_only_where_they_vary_and_somebody_asks(wrapped, sizes, known):
    with tf.Graph().as_default(), tf.Session() as session:
        optimizer_fn = mox.get_optimizer_fn("sgd", 0.1)
        if wrapped:
            optimizer_fn = mox.get_optimizer_wrapper_fn("batch_gradients", optimizer_fn, num_batches=2)
        counts = [tf.placeholder_with_default(2, []) if size is None else tf.constant(size) for size in sizes]
        towers = [Tower([], [], count) for count in counts]
        samples = Strategy.step_samples(towers, [optimizer_fn()])
        assert (samples is not None) is known
        if known:
            assert session.run(samples) == 5


class OnOneDevice(Strategy):
    def tower_device(self, index):
        return "/cpu:0"


def test_gradients_of_a_tower_by_loss_and_scope():
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.get_variable("a/w", initializer=2.0)
        b = tf.get_variable("b/w", initializer=3.0)
        tower = Tower([a * b, a * a + b], [["a"], None])
        optimizers = [tf.train.GradientDescentOptimizer(1.0)] * 2
        strategy, scale = OnOneDevice(["/cpu:0"]), FixedLossScale(4.0)
        (groups,) = strategy.tower_gradients([tower], optimizers, scale, [0.5], spread=False)
        assert [[variable for _, variable in group] for group in groups] == [[a], [a, b]]
        session.run(tf.global_variables_initializer())
        # Half of each gradient, whatever the loss scale.
        assert session.run([[gradient for gradient, _ in group] for group in groups]) == [[1.5], [2.0, 0.5]]


WORKER = Role("worker", 1, ("a:1", "b:1"))


@register_strategy("test_local", "test_local_2", cluster=False)
class OwnLocal(Local):
    """For one process."""


@register_strategy("test_collective", cluster=True)
class OwnCollective(Collective):
    """For a cluster."""


def test_a_context_has_defaults():
    context = StrategyContext("x", ["/cpu:0"])
    assert (context.role, context.run, context.connect_ring()) == (Role(), 0, None)
    assert context.connect_ring is no_ring


@pytest.mark.parametrize("name", ["test_local", "test_local_2"])
def test_one_process(name):
    mox.set_flag("variable_update", name)
    assert type(choose_strategy(True, Role())) is OwnLocal
    assert type(choose_strategy(False, Role())) is Local
    assert find_strategy(name, cluster=False) is OwnLocal
    with pytest.raises(ValueError, match=f"--variable_update={name} is for one machine"):
        choose_strategy(True, WORKER)


def test_a_cluster():
    mox.set_flag("variable_update", "test_collective")
    strategy = choose_strategy(True, WORKER)
    assert type(strategy) is OwnCollective
    assert (strategy.num_workers, strategy.worker_index) == (2, 1)
    with pytest.raises(ValueError, match="--variable_update=test_collective is for a cluster"):
        choose_strategy(True, Role())


def test_the_command_line_is_read_before_the_script_registers():
    FLAGS.parse(["--variable_update=test_late", "--num_gpus=2"])
    with pytest.raises(ValueError, match="--variable_update='test_late': expected one of auto, parameter_server"):
        FLAGS.get("variable_update")
    register_strategy("test_late", cluster=False)(OwnLocal)
    FLAGS.check()
    strategy = choose_strategy(True, Role())
    assert type(strategy) is OwnLocal and strategy.num_towers == 2
    assert "test_late" in FLAGS.get_help()
