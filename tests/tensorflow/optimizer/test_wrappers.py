"""Every wrapper against NumPy over 20 steps; stacks; restarts; `get_optimizer_wrapper_fn`."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import FIRST, GRADIENTS, STEPS, Trained, close, computed, momentum

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.ema import MARK, averaged_name
from moxing.tensorflow.optimizer.factory import get_optimizer_fn
from moxing.tensorflow.optimizer.wrapper import flush_op
from moxing.tensorflow.optimizer.wrappers import WRAPPERS, get_optimizer_wrapper_fn


def inner():
    return tf.train.MomentumOptimizer(0.125, 0.875)


def wrapped(name, opt=inner, **arguments):
    return get_optimizer_wrapper_fn(name, opt, **arguments)


# --- what they compute ------------------------------------------------------------------------------------------------


def lars(ratio, decay, update):
    def adapted(w, g, state, name):
        if w.ndim > 1:
            length, slope = np.linalg.norm(w), np.linalg.norm(g)
            g = ratio * length / (slope + decay * length) * (g + decay * w)
        return update(w, g, state, name)

    return adapted


def means(count, gradients=GRADIENTS):
    """Of every `count` gradients, the last ones included if they are fewer."""
    groups = [gradients[begin : begin + count] for begin in range(0, len(gradients), count)]
    return [{name: np.mean([one[name] for one in group], 0) for name in FIRST} for group in groups]


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_lars(decay):
    expected = computed(lars(0.02, decay, momentum()))
    fn = wrapped("lars", ratio=0.02, weight_decay=decay)
    close(Trained(fn).run(), expected)
    close(Trained(fn, partitions=2).run(), expected)
    close(Trained(fn, sparse=["rows"]).run(), expected)


def test_lars_where_norms_are_zero():
    with tf.Graph().as_default(), tf.Session() as session:
        zero = tf.get_variable("zero", [2, 1], initializer=tf.zeros_initializer(), use_resource=True)
        still = tf.get_variable("still", [2, 1], initializer=tf.ones_initializer(), use_resource=True)
        optimizer = wrapped("lars", tf.train.GradientDescentOptimizer(1.0), ratio=0.5)()
        train = optimizer.apply_gradients([(tf.constant([[1.0], [-2.0]]), zero), (tf.zeros([2, 1]), still)])
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([zero, still])[0].tolist() == [[-1], [2]]
        assert session.run(still).tolist() == [[1], [1]]


@pytest.mark.parametrize("count", [1, 4, 5])
@pytest.mark.parametrize("sparse", [(), ("rows", "kernel")])
def test_batch_gradients(count, sparse):
    """20 micro-steps are 20 / n steps with n times the batch."""
    trained = Trained(wrapped("batch_gradients", num_batches=count), sparse=sparse)
    close(trained.run(), computed(momentum(), means(count)))
    assert trained.session.run(trained.step) == STEPS


def test_batch_gradients_between_two_updates():
    trained = Trained(wrapped("batch_gradients", num_batches=8))
    for name, value in trained.run(7).items():
        np.testing.assert_array_equal(value, FIRST[name])
    assert trained.session.run(trained.step) == 7
    close(trained.run(8, 7), computed(momentum(), means(8, GRADIENTS[:8])))


def test_what_is_left_over_is_applied_once():
    trained = Trained(wrapped("batch_gradients", num_batches=8))
    with trained.graph.as_default():
        flush = flush_op([trained.optimizer])
    trained.run()
    trained.session.run(flush)
    expected = computed(momentum(), means(8))
    close(trained.values(), expected)
    trained.session.run(flush)
    close(trained.values(), expected)


def test_rows_of_sparse_gradients_that_have_none_stay():
    """Momentum of TensorFlow leaves rows alone that a sparse gradient does not name; so does it here."""

    def run(optimizer, gradient, steps):
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.get_variable("w", initializer=np.ones([5, 2]), use_resource=True)
            rows = tf.placeholder(tf.int32, [None])
            slices = tf.IndexedSlices(tf.ones([tf.size(rows), 2], tf.float64), rows, tf.shape(w))
            train = optimizer.apply_gradients([(slices, w)])
            session.run(tf.global_variables_initializer())
            for named in steps:
                session.run(train, {rows: named})
            return session.run(w)

    many = run(wrapped("batch_gradients", num_batches=2)(), None, [[0, 1], [1, 2], [1], [4]])
    few = run(tf.train.MomentumOptimizer(0.125 / 2, 0.875), None, [[0, 1, 1, 2], [1, 4]])
    np.testing.assert_allclose(many, few, rtol=1e-6)


def test_lookahead():
    slow = {name: np.array(value) for name, value in FIRST.items()}
    fast = momentum()

    def update(w, g, state, name):
        w = fast(w, g, state, name)
        if state["t"] % 3 == 0:
            slow[name] += 0.25 * (w - slow[name])
            return np.array(slow[name])
        return w

    trained = Trained(wrapped("lookahead", k=3, alpha=0.25))
    close(trained.run(), computed(update))
    with trained.graph.as_default():
        slots = {name: trained.optimizer.get_slot(variable, "slow") for name, variable in trained.variables.items()}
    close(trained.session.run(slots), slow)


@pytest.mark.parametrize("warm_up", [False, True])
def test_ema(warm_up):
    average = {name: np.array(value) for name, value in FIRST.items()}
    fast = momentum()

    def update(w, g, state, name):
        w = fast(w, g, state, name)
        done = state["t"] - 1
        decay = min(0.75, (1 + done) / (10 + done)) if warm_up else 0.75
        average[name] = decay * average[name] + (1 - decay) * w
        return w

    trained = Trained(wrapped("ema", decay=0.75, warm_up=warm_up))
    close(trained.run(), computed(update))
    averages = trained.optimizer.averages()
    assert {key: value.op.name for key, value in averages.items()} == {
        f"net/{name}": f"net/{name}/ExponentialMovingAverage" for name in FIRST
    }
    close(trained.session.run({name: averages[f"net/{name}"] for name in FIRST}), average)


def test_ema_has_the_names_of_tensorflow():
    with tf.Graph().as_default():
        w = tf.get_variable("net/w", [2], use_resource=True)
        average = tf.train.ExponentialMovingAverage(0.9)
        average.apply([w])
        assert average.average_name(w) == averaged_name(w)


def test_lars_batch_gradients_and_momentum():
    """The stack of the manual, with optimizers and with functions in between."""
    expected = computed(lars(0.02, 0.01, momentum()), means(4))

    def as_in_the_manual():
        opt = mox.get_optimizer_fn("momentum", learning_rate=0.125, momentum=0.875)()
        opt = mox.get_optimizer_wrapper_fn("lars", opt, ratio=0.02, weight_decay=0.01)()
        return mox.get_optimizer_wrapper_fn("batch_gradients", opt, num_batches=4, sync_on_apply=True)()

    functions = wrapped("batch_gradients", wrapped("lars", ratio=0.02, weight_decay=0.01), num_batches=4)
    for fn in (as_in_the_manual, functions):
        trained = Trained(fn)
        close(trained.run(), expected)
        own = {"net/kernel/BatchGradients", "net/kernel/Momentum", "moxing/optimizer/batch_gradients/count"}
        assert own <= set(trained.state())


@pytest.mark.parametrize(
    "order", [["ema", "batch_gradients"], ["batch_gradients", "ema"], ["lookahead", "lars", "ema"]]
)
def test_stacks_train_what_is_inside(order):
    arguments = {
        "ema": {"decay": 0.5},
        "batch_gradients": {"num_batches": 4},
        "lookahead": {"k": 2},
        "lars": {"ratio": 0.05},
    }
    fn = inner
    for name in order:
        fn = wrapped(name, fn, **arguments[name])
    trained = Trained(fn)
    values = trained.run()
    if "batch_gradients" in order:
        close(values, computed(momentum(), means(4)))
    assert all(np.isfinite(value).all() for value in values.values())
    with trained.graph.as_default():
        trained.session.run(flush_op([trained.optimizer]))


# --- restarts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("batch_gradients", {"num_batches": 4}),
        ("lookahead", {"k": 4}),
        ("ema", {"decay": 0.5, "warm_up": True}),
        ("lars", {"ratio": 0.02}),
    ],
)
@pytest.mark.parametrize("inside", ["momentum", "adam", "lamb"])
def test_a_restart_goes_on_bit_for_bit(name, arguments, inside, tmp_path):
    fn = wrapped(name, get_optimizer_fn(inside, 0.125), **arguments)
    trained = Trained(fn)
    trained.run(10)
    path = trained.save(tmp_path)
    trained.run(STEPS, 10)
    other = Trained(fn).restore(path)
    other.run(STEPS, 10)
    for one, same in ((trained.values(), other.values()), (trained.state(), other.state())):
        assert one and one.keys() == same.keys()
        for key, value in one.items():
            np.testing.assert_array_equal(value, same[key], err_msg=key)


@pytest.mark.parametrize(("name", "slot"), [("ema", "average"), ("lookahead", "slow")])
def test_a_warm_start_begins_with_the_weights_of_the_checkpoint(name, slot):
    trained = Trained(wrapped(name, tf.train.GradientDescentOptimizer(0.0)))
    with trained.graph.as_default():
        kernel = trained.variables["kernel"]
        trained.session.run(kernel.assign(tf.fill([4, 3], np.float64(5.0))))
        trained.run(3)
        np.testing.assert_allclose(trained.session.run(trained.optimizer.get_slot(kernel, slot)), np.full([4, 3], 5.0))


# --- get_optimizer_wrapper_fn -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_gradients_are_computed_as_tensorflow_does(name):
    arguments = {"num_batches": 2} if name == "batch_gradients" else {}
    assert type(wrapped(name, **arguments)()).compute_gradients is tf.train.Optimizer.compute_gradients


def test_an_optimizer_with_its_own_way_to_compute_gradients_keeps_it():
    class Clipping(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, *args, **kwargs):
            return [(tf.clip_by_value(g, -1, 1), v) for g, v in super().compute_gradients(*args, **kwargs)]

    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=3.0, use_resource=True)
        optimizer = wrapped("ema", wrapped("lars", Clipping(1.0)))()
        assert type(optimizer).compute_gradients is not tf.train.Optimizer.compute_gradients
        train = optimizer.minimize(100 * w)
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(w) == 2.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wrapped("batch_gradient"), ValueError, r"name='batch_gradient'\).*Did you mean 'batch_gradients'\?"),
        (lambda: wrapped("lars", 0.1), TypeError, r"\('lars', 0.1\): expected an optimizer, or a function"),
        (lambda: wrapped("lars", lambda: 0.1)(), TypeError, r"the function returned 0.1: expected a tf.train.Optim"),
        (lambda: wrapped("lars", radio=1.0), TypeError, r"'radio'; the wrapper takes ratio, weight_decay"),
        (lambda: wrapped("ema", wrapped("lars", wrapped("ema")))(), ValueError, "ema is inside already"),
        (lambda: wrapped("batch_gradients"), TypeError, "num_batches"),
        (lambda: wrapped("batch_gradients", num_batches=0)(), ValueError, r"num_batches=0\): expected an integer fr"),
        (lambda: wrapped("batch_gradients", num_batches=2, sync_on_apply=1)(), ValueError, r"sync_on_apply=1\)"),
        (lambda: wrapped("lars", ratio=0)(), ValueError, r"lars\(ratio=0\): expected a number above 0"),
        (lambda: wrapped("lars", weight_decay=-1)(), ValueError, r"lars\(weight_decay=-1\)"),
        (lambda: wrapped("lookahead", k=0)(), ValueError, r"lookahead\(k=0\)"),
        (lambda: wrapped("lookahead", alpha=2)(), ValueError, r"lookahead\(alpha=2\)"),
        (lambda: wrapped("ema", decay=1.0)(), ValueError, r"ema\(decay=1.0\)"),
        (lambda: wrapped("ema", warm_up=3)(), ValueError, r"ema\(warm_up=3\)"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_no_gradients():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="LARS: no gradients provided"):
        wrapped("lars")().apply_gradients([(None, tf.get_variable("w", [1]))])


def test_flush_comes_after_apply():
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="flush_op comes after apply_gradients"):
        wrapped("batch_gradients", num_batches=2)().flush_op()


@pytest.mark.parametrize(
    ("sync", "job", "warns"), [(True, "/job:worker/task:0", 1), (False, "/job:worker", 0), (True, "", 0)]
)
def test_the_warning_of_the_manual(sync, job, warns, caplog):
    mox.set_flag("sync_replicas", sync)
    caplog.set_level("WARNING", logger="tensorflow")
    with tf.Graph().as_default(), tf.device(job):
        wrapped("lars")()
    line = "Using OptimizerWrapper when sync_replicas is True may cause performance loss."
    assert caplog.messages.count(line) == warns


def test_workers_that_nobody_counted():
    """A cluster of TF_CONFIG, say."""
    mox.set_flag("sync_replicas", False)
    with tf.Graph().as_default(), tf.device("/job:worker/task:1"):
        wrapped("batch_gradients", num_batches=2)()
        with pytest.raises(ValueError, match="sync_on_apply=True.*neither mox.run nor --worker_hosts tells"):
            wrapped("batch_gradients", num_batches=2, sync_on_apply=True)()


def test_half_precision_is_added_up_in_32_bits():
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [1], tf.float16, tf.zeros_initializer(), use_resource=True)
        gradient = tf.placeholder(tf.float16, [1])
        sgd = tf.train.GradientDescentOptimizer(1.0)
        fn = wrapped(
            "batch_gradients", wrapped("lookahead", wrapped("ema", sgd, decay=0.999), k=1, alpha=1), num_batches=4
        )
        optimizer = fn()
        train = optimizer.apply_gradients([(gradient, w)])
        session.run(tf.global_variables_initializer())
        for value in (2048, 1, 1, 2):
            session.run(train, {gradient: [value]})
        assert session.run(w) == [-513]  # 2048 + 1 is 2048 in half precision
        np.testing.assert_allclose(session.run(optimizer.get_slot(w, "average")), [-0.513], rtol=1e-3)
        assert optimizer.get_slot(w, "slow").dtype == tf.float32


# --- in a run ---------------------------------------------------------------------------------------------------------

ROWS = np.random.RandomState(3).rand(96, 3).astype(np.float32)


def rows(mode):
    return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(ROWS)).get_next()


def model_fn(inputs, mode):
    kernel = tf.get_variable("kernel", [3, 2], initializer=tf.constant_initializer(0.5))
    bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(inputs, kernel) + bias - 1.0))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss})


def stack():
    fn = wrapped("lars", mox.get_optimizer_fn("momentum", 0.1), ratio=0.05, weight_decay=0.01)
    return wrapped("batch_gradients", wrapped("ema", fn, decay=0.5), num_batches=4)()


def checkpoint(directory):
    reader = tf.train.load_checkpoint(str(directory))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def run(directory, towers=1, update=None, scale=1, steps=12, optimizer_fn=stack, batch=8):
    mox.set_flag("num_gpus", towers)
    mox.set_flag("variable_update", update)
    mox.set_flag("loss_scale", scale)
    mox.run(
        input_fn=rows,
        model_fn=model_fn,
        optimizer_fn=optimizer_fn,
        run_mode="TRAIN",
        batch_size=batch // towers,
        log_dir=str(directory),
        max_number_of_steps=steps,
        log_every_n_steps=0,
    )
    saved = checkpoint(directory)
    return {name: value for name, value in saved.items() if not name.startswith("moxing/loss_scale/")}


@pytest.fixture(scope="module")
def one_tower(tmp_path_factory):
    return run(tmp_path_factory.mktemp("one"))


def test_micro_steps_of_a_run_are_steps_with_a_larger_batch(one_tower, tmp_path):
    def without():
        fn = wrapped("lars", mox.get_optimizer_fn("momentum", 0.1), ratio=0.05, weight_decay=0.01)
        return wrapped("ema", fn, decay=0.5)()

    large = run(tmp_path, steps=3, optimizer_fn=without, batch=32)
    assert one_tower["global_step"] == 12 and one_tower[MARK] == 3
    for name in ("kernel", "bias", "kernel/Momentum", "kernel/ExponentialMovingAverage"):
        np.testing.assert_allclose(one_tower[name], large[name], rtol=2e-5, atol=1e-6, err_msg=name)
    assert set(one_tower) - set(large) == {
        "kernel/BatchGradients",
        "bias/BatchGradients",
        "moxing/optimizer/batch_gradients/count",
        "moxing/optimizer/batch_gradients/missing",
    }


@pytest.mark.parametrize(
    ("towers", "update", "scale"),
    [(1, None, "dynamic"), (2, "parameter_server", 1), (2, "replicated", 1), (2, "replicated", "dynamic")],
)
def test_all_layouts_train_the_same(towers, update, scale, one_tower, tmp_path):
    other = run(tmp_path, towers, update, scale)
    assert set(other) == set(one_tower)
    for name, value in one_tower.items():
        np.testing.assert_allclose(other[name], value, rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("first", [1, 6])
def test_an_interrupted_run_goes_on_in_the_middle_of_an_accumulation(first, one_tower, tmp_path):
    halfway = run(tmp_path, steps=first)
    assert halfway["moxing/optimizer/batch_gradients/count"] == first % 4
    assert np.abs(halfway["kernel/BatchGradients"]).max() > 0
    whole = run(tmp_path)
    for name, value in one_tower.items():
        np.testing.assert_array_equal(whole[name], value, err_msg=name)


def test_two_losses_have_counters_of_their_own(tmp_path):
    def two(inputs, mode):
        one, other = (tf.get_variable(f"{name}/w", [3, 1]) for name in ("one", "other"))
        losses = [tf.reduce_mean(tf.square(tf.matmul(inputs, w) - 1.0)) for w in (one, other)]
        return mox.ModelSpec(loss=losses, var_scopes=[["one"], ["other"]], log_info={"loss": losses[0]})

    mox.run(
        input_fn=rows,
        model_fn=two,
        optimizer_fn=[wrapped("batch_gradients", mox.get_optimizer_fn("sgd", 0.1), num_batches=n) for n in (4, 5)],
        run_mode="TRAIN",
        batch_size=8,
        log_dir=str(tmp_path),
        max_number_of_steps=7,
    )
    saved = checkpoint(tmp_path)
    assert saved["moxing/optimizer/batch_gradients/count"] == 3
    assert saved["moxing/optimizer/batch_gradients/count_1"] == 2
