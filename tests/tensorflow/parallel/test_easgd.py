"""Elastic averaging: two workers and a ps, all real servers of this process, against NumPy; what stands where."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.cli.cluster.launcher import free_ports
from moxing.tensorflow.parallel import Tower, TrainSetup, parameter_server
from moxing.tensorflow.parallel.easgd import Easgd
from moxing.tf1.graph.run_graph import run_graph
from moxing.tf1.graph.variables import saved_name

STEPS = 20
FIRST = {"net/kernel": np.random.RandomState(1).randn(4, 3), "net/bias": np.random.RandomState(2).randn(3)}
#: For every worker and step.
GRADIENTS = [
    [{name: np.random.RandomState(17 * worker + step).randn(*value.shape) for name, value in FIRST.items()}
     for step in range(STEPS)]
    for worker in range(2)
]  # fmt: skip


@pytest.fixture(autouse=True)
def asynchronous():
    mox.set_flag("sync_replicas", False)


@pytest.fixture(scope="module")
def servers():
    ports = free_ports(4)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    spec = tf.train.ClusterSpec({"ps": addresses[:2], "worker": addresses[2:]})
    return [
        tf.train.Server(spec, job_name=job, task_index=index, start=True)
        for job, index in [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)]
    ]


def momentum():
    return tf.train.MomentumOptimizer(0.125, 0.875)


def easgd(opt=momentum, period=3, moving_rate=0.25):
    return mox.get_optimizer_wrapper_fn("easgd", opt, period=period, moving_rate=moving_rate)


class Worker:
    """One worker's graph and session; the losses are the products of variables and fed gradients."""

    def __init__(self, index, running, optimizer_fn, towers=1, name="", servers=2):
        self.index, self.name = index, name
        with run_graph(tf.Graph()) as self.graph:
            self.strategy = Easgd([f"/cpu:{tower}" for tower in range(towers)], 2, index, 1, servers=servers)
            self.feeds = {key: tf.placeholder(tf.float64, value.shape) for key, value in FIRST.items()}
            with self.strategy.scope():
                self.step = tf.train.get_or_create_global_step()
                built = []
                for tower in range(towers):
                    with self.strategy.tower_scope(tower):
                        variables = [self._variable(key, value) for key, value in FIRST.items()]
                        terms = [tf.reduce_sum(v * fed) for v, fed in zip(variables, self.feeds.values(), strict=True)]
                        built.append(Tower([tf.add_n(terms)], [None]))
                self.model = variables
                train = self.strategy.train_op(TrainSetup(built, [optimizer_fn], [], self.step))
                self.train, self.flush = train.op, train.flush
                self.begin = [tf.global_variables_initializer()] if index == 0 else []
                self.local = tf.local_variables_initializer()
                self.take = self.strategy.worker_sync_ops()
            self.centres = {variable.op.name: variable for variable in tf.trainable_variables()}
            self.saver = tf.train.Saver()
        if running is not None:
            config = tf.ConfigProto()
            self.strategy.configure(config)
            self.session = tf.Session(running[2 + index].target, graph=self.graph, config=config)
            self.session.run(self.begin)

    def _variable(self, key, value):
        def part(shape, dtype=None, partition_info=None):
            begin = partition_info.var_offset[0] if partition_info else 0
            return tf.constant(value[begin : begin + shape[0]], dtype)

        return tf.get_variable(self.name + key, value.shape, tf.float64, part)

    def join(self):
        self.session.run(self.local)
        self.session.run(self.take)
        return self

    def do(self, number):
        fed = GRADIENTS[self.index][number]
        self.session.run(self.train, {self.feeds[key]: value for key, value in fed.items()})

    def copies(self):
        return dict(zip(FIRST, self.session.run(self.model), strict=True))

    def centre(self):
        return {key: self.session.run(self.centres[self.name + key]) for key in FIRST}


class Reference:
    """The same in NumPy."""

    def __init__(self, period=3, rate=0.25, workers=2):
        self.centre = {key: np.array(value) for key, value in FIRST.items()}
        self.x = [{key: np.array(value) for key, value in FIRST.items()} for _ in range(workers)]
        self.speed = [dict.fromkeys(FIRST, 0.0) for _ in range(workers)]
        self.period, self.rate, self.count = period, rate, [0] * workers

    def do(self, worker, gradients):
        self.count[worker] += 1
        for key in FIRST:
            self.speed[worker][key] = 0.875 * self.speed[worker][key] + gradients[key]
            self.x[worker][key] = self.x[worker][key] - 0.125 * self.speed[worker][key]
            if self.count[worker] % self.period == 0:
                d = self.rate * (self.x[worker][key] - self.centre[key])
                self.x[worker][key] = self.x[worker][key] - d
                self.centre[key] = self.centre[key] + d


def close(values, expected):
    assert values.keys() == expected.keys()
    for key, value in values.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-6, atol=1e-9, err_msg=key)


# --- what they compute ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, "dynamic"])
def test_two_workers_and_their_centre(servers, scale):
    """20 steps each; the second worker goes at another pace."""
    mox.set_flag("loss_scale", scale)
    expected = Reference()
    workers = [Worker(index, servers, easgd(), name="two/").join() for index in range(2)]
    order = [0, 0, 1, 0, 0, 1, 1, 1, 0, 1] * 4
    done = [0, 0]
    for which in order:
        workers[which].do(done[which])
        expected.do(which, GRADIENTS[which][done[which]])
        done[which] += 1
    assert done == [STEPS, STEPS]
    for which in range(2):
        close(workers[which].copies(), expected.x[which])
    close(workers[0].centre(), expected.centre)
    assert np.abs(expected.centre["net/bias"] - expected.x[0]["net/bias"]).max() > 1e-3
    assert workers[0].session.run(workers[0].step) == 40


def test_a_worker_that_comes_later_begins_with_the_centre(servers):
    workers = [Worker(index, servers, easgd(period=1), name="late/") for index in range(2)]
    workers[0].join()
    for step in range(5):
        workers[0].do(step)
    workers[1].join()
    close(workers[1].copies(), workers[0].centre())
    # As after a restart: what it had of its own is forgotten.
    workers[0].join()
    close(workers[0].copies(), workers[1].centre())
    for step in range(5, 8):
        workers[0].do(step)
    expected = Reference(period=1, workers=1)
    for step in range(5):
        expected.do(0, GRADIENTS[0][step])
    expected.x, expected.speed = [dict(expected.centre)], [dict.fromkeys(FIRST, 0.0)]
    for step in range(5, 8):
        expected.do(0, GRADIENTS[0][step])
    close(workers[0].centre(), expected.centre)


def stacked(order):
    arguments = {
        "easgd": {"period": 2, "moving_rate": 0.5},
        "batch_gradients": {"num_batches": 2},
        "lars": {"ratio": 0.5},
        "lookahead": {"k": 2, "alpha": 0.5},
    }
    fn = momentum
    for name in order:
        fn = mox.get_optimizer_wrapper_fn(name, fn, **arguments[name])
    return fn


@pytest.mark.parametrize(("order", "updates"), [(("batch_gradients", "easgd"), 2), (("easgd", "batch_gradients"), 4)])
def test_around_and_inside_of_batch_gradients(servers, order, updates):
    """Around it the period counts batches, inside it counts updates."""
    worker = Worker(0, servers, stacked(order), name=f"{order[0]}/").join()
    expected = Reference(period=updates // 2, rate=0.5, workers=1)
    for step in range(0, 8, 2):
        pair = GRADIENTS[0][step : step + 2]
        for each in (step, step + 1):
            worker.do(each)
        expected.do(0, {key: np.mean([one[key] for one in pair], 0) for key in FIRST})
    close(worker.copies(), expected.x[0])
    close(worker.centre(), expected.centre)
    worker.do(8)
    worker.session.run(worker.flush)
    expected.period = STEPS  # what is left over is not exchanged any more
    expected.do(0, GRADIENTS[0][8])
    close(worker.copies(), expected.x[0])


@pytest.mark.parametrize("order", [("lars", "easgd"), ("easgd", "lars"), ("lookahead", "easgd")])
def test_other_stacks_train_and_keep_nothing_in_the_checkpoint(servers, order):
    worker = Worker(0, servers, stacked(order), name="/".join(order) + "/").join()
    for step in range(8):
        worker.do(step)
    for key, value in worker.centre().items():
        assert np.abs(value - FIRST[key]).max() > 1e-3
    with worker.graph.as_default():
        assert {saved_name(variable) for variable in tf.global_variables()} == {
            "global_step", *(worker.name + key for key in FIRST)
        }  # fmt: skip


def test_half_precision(servers):
    """The difference is computed in 32 bits, and no type is mixed up with another."""

    class Half(Worker):
        def _variable(self, key, value):
            half = key == "net/bias"
            dtype = tf.float16 if half else tf.float64
            return tf.cast(tf.get_variable(self.name + key, value.shape, dtype, tf.ones_initializer()), tf.float64)

    fn = easgd(mox.get_optimizer_fn("sgd", 1.0), period=1, moving_rate=0.5)
    worker = Half(0, servers, fn, name="half/").join()
    worker.do(0)
    for key, value in worker.centre().items():
        assert value.dtype == (np.float16 if key == "net/bias" else np.float64)
        np.testing.assert_allclose(value, 1 - 0.5 * GRADIENTS[0][0][key], rtol=2e-3, atol=1e-3)


def test_layers_of_keras(servers):
    class Layered(Worker):
        def _variable(self, key, value):
            if key == "net/kernel":
                self.layer = tf.keras.layers.Dense(3, use_bias=False, dtype="float64", name="dense")
                self.layer.build([None, 4])
                return self.layer.kernel
            return super()._variable(key, value)

    worker = Layered(0, None, easgd())
    assert [variable.op.name for variable in worker.layer.trainable_weights] == ["kernel/easgd"]
    with worker.graph.as_default():
        assert [v.op.name for v in tf.trainable_variables()] == ["kernel", "net/bias"]


# --- what stands where ------------------------------------------------------------------------------------------------


def job_of(operation):
    return tf.DeviceSpec.from_string(operation.device).job


@pytest.mark.parametrize("towers", [1, 2])
@pytest.mark.parametrize("opt", [momentum, lambda: tf.train.AdamOptimizer(0.1)], ids=["momentum", "adam"])
def test_a_step_uses_the_network_for_the_count_and_the_exchange_alone(towers, opt):
    worker = Worker(1, None, easgd(opt), towers)
    with worker.graph.as_default():
        for variable in tf.global_variables():
            assert job_of(variable.op) == "ps"
        local = {variable.op.name: variable for variable in tf.local_variables()}
        assert {"net/kernel/easgd", "net/bias/easgd"} < set(local)
        assert len(local) > 4
        for variable in local.values():
            assert tf.DeviceSpec.from_string(variable.device).job == "worker", variable
            assert tf.DeviceSpec.from_string(variable.device).task == 1
    counter = {worker.step.handle.op}
    exchange = [op for op in worker.graph.get_operations() if op.type in ("If", "StatelessIf")]
    assert len(exchange) == 1
    needed, left = set(), [worker.train]
    while left:
        operation = left.pop()
        if operation in needed:
            continue
        needed.add(operation)
        left.extend([tensor.op for tensor in operation.inputs])
        left.extend(operation.control_inputs)
    centres = {variable.handle.op for variable in worker.centres.values()}
    crossing = [
        operation
        for operation in needed
        if job_of(operation) == "ps" and operation not in centres | counter
        and not any(tensor.op in counter for tensor in operation.inputs)
        and operation.type not in ("Const", "NoOp")
    ]  # fmt: skip
    assert crossing == []
    users = {user for op in centres for tensor in op.outputs for user in tensor.consumers() if user in needed}
    assert users == set(exchange)


def test_bytes_on_the_wire(servers):
    """As TensorFlow traces them: outside of an exchange the counter and whether one is due, and nothing else."""
    worker = Worker(0, servers, easgd(period=3), name="traced/").join()
    received = []
    for step in range(4):
        traced = tf.RunMetadata()
        fed = {worker.feeds[key]: value for key, value in GRADIENTS[0][step].items()}
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        worker.session.run(worker.train, fed, options=options, run_metadata=traced)
        stats = [node for device in traced.step_stats.dev_stats for node in device.node_stats]
        sizes = [re.match(r"\[(\d+)B\]", node.timeline_label) for node in stats if node.node_name == "RecvTensor"]
        received.append(sum(int(size[1]) for size in sizes))
    variables = sum(value.size * 8 for value in FIRST.values())
    counter, due = 8, 2  # one byte to each ps
    # The trace of a ps may come too late, when the step is done.
    assert max(received[0], received[1], received[3]) <= counter + due
    assert variables <= received[2] <= counter + due + 2 * variables


def test_the_model_sees_copies_and_everybody_else_the_centre():
    worker = Worker(0, None, easgd())
    assert [v.op.name for v in worker.model] == ["net/kernel/easgd", "net/bias/easgd"]
    assert [saved_name(v) for v in worker.model] == list(FIRST)
    with worker.graph.as_default():
        assert [v.op.name for v in tf.trainable_variables()] == list(FIRST)
        assert {v.op.name for v in tf.global_variables()} == {*FIRST, "global_step"}


def test_an_evaluation_beside_the_training_sees_the_centre():
    worker = Worker(0, None, easgd())
    with (
        worker.graph.as_default(),
        worker.strategy.scope(),
        worker.strategy.evaluation_scope("inter_eval", lambda v: v),
    ):
        seen = [worker._variable(key, value) for key, value in FIRST.items()]
    assert [variable.op.name for variable in seen] == list(FIRST)


def test_variables_in_slices(monkeypatch, tmp_path, servers):
    """Of a variable that is spread over the ps every slice is exchanged; a checkpoint has it in one piece."""
    monkeypatch.setattr(parameter_server, "_LARGE_BYTES", 96)
    worker = Worker(0, servers, easgd(mox.get_optimizer_fn("sgd", 0.125), period=1, moving_rate=0.5), name="cut/")
    worker.join()
    worker.do(0)
    with worker.graph.as_default():
        path = worker.saver.save(worker.session, str(tmp_path / "model"), write_meta_graph=False)
    reader = tf.train.load_checkpoint(path)
    assert set(reader.get_variable_to_shape_map()) == {"global_step", *(f"cut/{key}" for key in FIRST)}
    for key, value in FIRST.items():
        expected = value - 0.5 * 0.125 * GRADIENTS[0][0][key]
        np.testing.assert_allclose(reader.get_tensor(f"cut/{key}"), expected, rtol=1e-6)
    with worker.graph.as_default():
        assert {v.op.name for v in tf.trainable_variables()} == {
            "cut/net/kernel/part_0", "cut/net/kernel/part_1", "cut/net/bias"
        }  # fmt: skip


def test_what_init_from_checkpoint_loads_is_the_centre(tmp_path, servers):
    with tf.Graph().as_default(), tf.Session() as session:
        for key, value in FIRST.items():
            tf.get_variable(f"from/{key}", initializer=value + 1, use_resource=True)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"), write_meta_graph=False)

    class Loading(Worker):
        def _variable(self, key, value):
            variable = super()._variable(key, value)
            tf.train.init_from_checkpoint(path, {f"from/{key}": variable})
            return variable

    worker = Loading(0, servers, easgd(), name="init/").join()
    close(worker.centre(), {key: value + 1 for key, value in FIRST.items()})
    close(worker.copies(), {key: value + 1 for key, value in FIRST.items()})


def test_a_function_that_promises_it_and_has_it_not():
    def optimizer_fn():
        return momentum()

    with pytest.raises(ValueError, match="without easgd"):
        Worker(0, None, optimizer_fn)
