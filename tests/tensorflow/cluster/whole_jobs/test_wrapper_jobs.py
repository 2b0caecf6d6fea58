"""Optimizer wrappers in whole jobs: elastic averaging, and batches of different sizes between workers."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from jobs import Job, alone, ended, finished, start

from moxing.cli.cluster.launcher import free_ports

SCRIPT = """
import json, os
import moxing.tensorflow as mox
import numpy as np
import tensorflow.compat.v1 as tf
from meeting import FirstStepsTogether

TRAINING = json.loads(os.environ['JOB'])
POINTS = np.random.RandomState(0).rand(TRAINING.get('samples', 40), 3)
LINE = POINTS @ np.array([1.0, -2.0, 3.0]) + 0.5


def input_fn(mode):
    dataset = tf.data.Dataset.from_tensor_slices((POINTS, LINE))
    if TRAINING.get('batches'):
        dataset = dataset.batch(TRAINING['batches'])
    dataset = dataset.repeat(TRAINING.get('epochs', -1) if mode == mox.ModeKeys.TRAIN else 1)
    return dataset.make_one_shot_iterator().get_next()


def model_fn(inputs, mode):
    x, y = inputs
    x.set_shape([None, 3])
    training = mode == mox.ModeKeys.TRAIN
    if TRAINING.get('normalise'):
        # Its moving averages stay on the ps; what it computes does not matter here.
        normal = tf.layers.batch_normalization(x, training=training, name='norm', center=False, scale=False)
        x = x + 0.0 * normal
    w = tf.get_variable('w', [3, 1], tf.float64, tf.zeros_initializer())
    b = tf.Variable(np.float64(0.0), name='b')
    loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, w), 1) + b - y))
    spec = mox.ExportSpec(inputs_dict={'x': x}, outputs_dict={'y': tf.matmul(x, w) + b})
    hook = mox.LogEvaluationMetricHook({'loss': loss}, batch_size=1, samples_in_train=400, prefix='[CENTRE]')
    hooks = [hook] if TRAINING.get('evaluate') else []
    hooks += [FirstStepsTogether()] if TRAINING.get('together') else []
    return mox.ModelSpec(loss=loss, log_info={'loss': loss}, export_spec=spec, hooks=hooks)


optimizer_fn = mox.get_optimizer_fn('momentum', TRAINING.get('rate', 0.02), momentum=0.5)
for name, arguments in TRAINING['wrappers']:
    optimizer_fn = mox.get_optimizer_wrapper_fn(name, optimizer_fn, **arguments)
if TRAINING.get('hidden'):
    # What model_fn has built, or nothing.
    hidden, optimizer_fn = optimizer_fn, lambda: [tf.get_collection(TRAINING['hidden'])[0], hidden()][1]

result = mox.run(
    input_fn=input_fn, model_fn=model_fn, optimizer_fn=optimizer_fn, run_mode=TRAINING.get('mode', 'TRAIN'),
    batch_size=TRAINING.get('batch_size', 4), auto_batch=not TRAINING.get('batches'),
    log_dir=TRAINING.get('log_dir'), checkpoint_path=TRAINING.get('checkpoint_path'),
    max_number_of_steps=TRAINING.get('steps', 10 ** 6), save_model_steps=TRAINING.get('save'),
    inter_mode=mox.ModeKeys.EVAL if TRAINING.get('evaluate') else None,
    export_model=mox.ExportKeys.TF_SERVING if TRAINING.get('export') else False,
)
numbers = {'step': int(result.global_step), 'loss': result.log_info['loss'], 'samples': result.samples}
print('RESULT', json.dumps(numbers), flush=True)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def saved(log_dir):
    reader = tf.train.load_checkpoint(str(log_dir))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


EASGD = [["easgd", {"period": 4, "moving_rate": 0.4}]]


@pytest.mark.slow
def test_elastic_averaging_of_two_workers(tmp_path, script):
    """It converges; the centre is what is saved under plain names, evaluated, exported, and gone on with."""
    log = tmp_path / "log"
    training = {"wrappers": EASGD, "steps": 1200, "log_dir": str(log), "save": 200, "rate": 0.1, "normalise": True}
    together = {**training, "together": True}
    done = finished(
        tmp_path / "job", 2, 1, ["--sync_replicas=False"], {**together, "export": True, "evaluate": True}, script
    )
    printed = [float(loss) for loss in re.findall(r"\[CENTRE\].*loss: (\S+)", done["worker 0"].log)]
    assert len(printed) >= 2 and printed[-1] < 0.02, done["worker 0"].log
    values = saved(log)
    assert set(values) == {"w", "b", "global_step", "norm/moving_mean", "norm/moving_variance"}
    assert values["global_step"] >= 1200
    assert all(done[f"worker {index}"].result["samples"] > 100 for index in range(2))
    evaluated = alone(
        tmp_path / "eval", {**training, "mode": "EVAL", "log_dir": None, "checkpoint_path": str(log)}, script=script
    )
    assert evaluated.result["loss"] < 0.02, evaluated.log
    assert list(log.rglob("saved_model.pb"))
    # A single process goes on with it, and with the job after that.
    more = alone(tmp_path / "alone", {**training, "steps": 1300 + int(values["global_step"])}, script=script)
    assert "without workers to exchange with" in more.log
    assert more.result["loss"] < 0.02
    last = saved(log)
    assert set(last) == set(values) and last["global_step"] == 1300 + values["global_step"]
    more = {**together, "steps": int(last["global_step"]) + 40}
    finished(tmp_path / "again", 2, 1, ["--sync_replicas=False"], more, script)
    again = saved(log)
    assert again["global_step"] >= last["global_step"] + 40
    # From where it was, not from the start.
    np.testing.assert_allclose(again["w"], last["w"], atol=0.2)


@pytest.mark.slow
def test_a_function_that_makes_easgd_inside(tmp_path, script):
    """As the manual writes its optimizers. A function that cannot be called before model_fn is told what to do."""
    training = {"wrappers": EASGD, "steps": 40, "hidden": "global_step", "log_dir": str(tmp_path / "log")}
    training["together"] = True
    done = finished(tmp_path / "job", 2, 1, ["--sync_replicas=False"], training, script)
    assert done["worker 1"].result["samples"] > 0
    assert set(saved(tmp_path / "log")) == {"w", "b", "global_step"}
    training = {"wrappers": EASGD, "steps": 4, "hidden": "trainable_variables"}
    ports = free_ports(2)
    hosts = [f"--ps_hosts=127.0.0.1:{ports[0]}", f"--worker_hosts=127.0.0.1:{ports[1]}", "--sync_replicas=False"]
    given = {"JOB": json.dumps(training)}
    server = start(tmp_path, "ps 0", [*hosts, "--job_name=ps", "--task_index=0"], script, given)
    worker = start(tmp_path, "worker 0", [*hosts, "--job_name=worker", "--task_index=0"], script, given)
    try:
        assert "optimizer_fn needs what model_fn builds" in ended(worker)
    finally:
        Job([server]).kill()


# --- batch_gradients --------------------------------------------------------------------------------------------------


def reference(batches_of_steps, count, rate=0.02):
    """NumPy: momentum over groups of steps, each with all samples of its group."""
    points = np.random.RandomState(0).rand(40, 3)
    line = points @ np.array([1.0, -2.0, 3.0]) + 0.5
    w, b, speed, slow = np.zeros(3), 0.0, np.zeros(3), 0.0
    for begin in range(0, len(batches_of_steps), count):
        rows = np.concatenate(batches_of_steps[begin : begin + count])
        x, y = points[rows], line[rows]
        error = x @ w + b - y
        speed, slow = 0.5 * speed + 2 * x.T @ error / len(rows), 0.5 * slow + 2 * error.mean()
        w, b = w - rate * speed, b - rate * slow
    return w, b


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ps", "flags", "endless"),
    [
        pytest.param(1, [], False, id="ps"),
        pytest.param(0, [], True, id="collective, endless"),
        pytest.param(1, ["--loss_scale=dynamic"], True, id="dynamic loss scale, endless"),
        pytest.param(1, [], True, id="ps, endless", marks=pytest.mark.slow),
        pytest.param(0, [], False, id="collective", marks=pytest.mark.slow),
        pytest.param(1, ["--loss_scale=dynamic"], False, id="dynamic loss scale", marks=pytest.mark.slow),
    ],
)
def test_short_batches_of_workers_in_step_count_by_their_samples(tmp_path, script, ps, flags, endless):
    """All batches have 3 samples, but the last ones 3 and 1; or in turn 6 and 6, 6 and 6, 6 and 6, 4 and 6, ..."""
    log = tmp_path / "log"
    training = {"wrappers": [["batch_gradients", {"num_batches": 3}]], "log_dir": str(log), "rate": 0.2}
    if endless:
        training |= {"batches": 6, "batch_size": 6, "steps": 12}
        batches = [np.arange(begin, min(begin + 6, 40)) for begin in range(0, 40, 6)] * 4
        steps = [np.concatenate(batches[place : place + 2]) for place in range(0, 24, 2)]
    else:
        training |= {"epochs": 1, "batch_size": 3}
        steps = [np.arange(begin, min(begin + 6, 40)) for begin in range(0, 40, 6)]
    finished(tmp_path / "job", 2, ps, flags, training, script)
    w, b = reference(steps, 3, 0.2)
    values = saved(log)
    np.testing.assert_allclose(values["w"][:, 0], w, rtol=1e-6)
    np.testing.assert_allclose(values["b"], b, rtol=1e-6)


def test_short_batches_of_a_worker_by_itself_count_by_their_samples(tmp_path, script):
    """Asynchronous: the sums are in the worker's memory."""
    training = {"wrappers": [["batch_gradients", {"num_batches": 3}]], "log_dir": str(tmp_path / "log"), "rate": 0.2}
    training |= {"epochs": 2, "batches": 6, "batch_size": 6}
    finished(tmp_path / "job", 1, 1, ["--sync_replicas=False"], training, script)
    w, b = reference([np.arange(begin, min(begin + 6, 40)) for begin in range(0, 40, 6)] * 2, 3, 0.2)
    values = saved(tmp_path / "log")
    np.testing.assert_allclose(values["w"][:, 0], w, rtol=1e-6)
    np.testing.assert_allclose(values["b"], b, rtol=1e-6)


@pytest.mark.parametrize("uneven", [pytest.param(False, marks=pytest.mark.slow), True])
def test_workers_of_tf_config_apply_together(tmp_path, script, uneven):
    """sync_on_apply knows how many workers there are, though no flag names them.

    The worker wants more steps than the chief: it also happens to one that reads global_step before the chief has
    counted the last step.
    """
    log = tmp_path / "log"
    wrappers = [["batch_gradients", {"num_batches": 2, "sync_on_apply": True}]]
    training = {"wrappers": wrappers, "log_dir": str(log), "batch_size": 4}
    flags = ["--sync_replicas=False", "--chief_inc_global_step=True"]
    # A step of all is 2 batches of each worker: 16 samples, or 24 and every now and then 22, in the order of the data.
    batches = [rows for epoch in range(20) for rows in np.split(np.arange(40), 10)]
    if uneven:
        training |= {"batches": 6, "batch_size": 6}
        batches = [np.arange(begin, min(begin + 6, 40)) for begin in range(0, 40, 6)] * 20
    addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
    cluster = {"ps": addresses[:1], "chief": addresses[1:2], "worker": addresses[2:]}
    job = Job([])
    try:
        for kind in cluster:
            told = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})}
            steps = 44 if kind == "worker" else 40
            task = json.dumps({**training, "steps": steps})
            job.processes[kind] = start(tmp_path, kind, flags, script, {"JOB": task, **told})
        codes = job.wait()
    finally:
        job.kill()
    assert set(codes.values()) == {0}, job.logs
    w, b = reference(batches[:80], 4)
    values = saved(log)
    np.testing.assert_allclose(values["w"][:, 0], w, rtol=1e-6)
    np.testing.assert_allclose(values["b"], b, rtol=1e-6)
