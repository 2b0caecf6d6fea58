"""Whole jobs of ps and workers, and of workers that all-reduce: their mathematics, data, ends and stops."""

from __future__ import annotations

import signal

import pytest
import tensorflow.compat.v1 as tf
from jobs import Job, alone, finished, job, saved_steps, start, weights
from linear_job import Training, reference
from PIL import Image

from moxing.cli.cluster.launcher import free_ports


def check_weights(log_dir, expected):
    trained, bias, step = weights(log_dir)
    assert step == expected.step
    assert trained == pytest.approx(expected.weights.tolist(), abs=1e-5)
    assert bias == pytest.approx(expected.bias, abs=1e-5)


# 57 samples are four steps of 14 and one sample more: in the last step one of the workers has nothing left. With two
# towers they are two steps of 28 and one sample, and three of four towers have nothing left.
@pytest.mark.parametrize(
    ("ps", "towers", "flags"),
    [
        pytest.param(1, 1, [], id="1 ps", marks=pytest.mark.slow),
        pytest.param(2, 2, [], id="2 ps and 2 towers"),
        pytest.param(0, 1, [], id="collective"),
        pytest.param(0, 2, [], id="collective with 2 towers", marks=pytest.mark.slow),
        pytest.param(1, 1, ["--variable_update=collective"], id="collective beside a ps", marks=pytest.mark.slow),
    ],
)
def test_weights_and_losses_are_those_of_numpy(tmp_path, ps, towers, flags):
    training = Training(log_dir=str(tmp_path / "log"), every=1)
    flags = [*flags, f"--num_gpus={towers}"]
    done = finished(tmp_path, 2, ps, flags, training)
    expected = reference(57, 1, (None, 2, towers))
    check_weights(tmp_path / "log", expected)
    for worker in range(2):
        process = done[f"worker {worker}"]
        printed = process.losses
        assert sorted(printed) == list(range(expected.step))
        for step, losses in enumerate(expected.losses):
            if losses[worker] is not None:
                assert printed[step] == pytest.approx(losses[worker], abs=6e-4)  # three digits are printed
        assert process.result["runs"][0]["global_step"] == expected.step
    samples = [done[f"worker {worker}"].result["runs"][0]["samples"] for worker in range(2)]
    assert samples == [29, 28]
    names = dict(tf.train.list_variables(str(tmp_path / "log")))
    assert sorted(names) == ["b", "b/Momentum", "global_step", "w", "w/Momentum"]
    assert done["worker 0"].result["runs"][0]["checkpoint"] == str(tmp_path / "log" / f"model.ckpt-{expected.step}")
    assert done["worker 1"].result["runs"][0]["checkpoint"] is None


@pytest.mark.slow
@pytest.mark.parametrize("firewall", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_three_collective_workers(tmp_path, firewall):
    """Around a ring of their own, and by TensorFlow's collectives where its ports are closed."""
    done = finished(tmp_path, 3, 0, [], Training(log_dir=str(tmp_path / "log"), firewall=firewall))
    check_weights(tmp_path / "log", reference(57, 1, (None, 3, 1)))
    for process in done.processes.values():
        assert ("only the ports of --worker_hosts are open" in process.log) == firewall


@pytest.mark.slow
def test_a_training_moves_between_all_layouts(tmp_path):
    """Each part goes on where the last one stopped: variables, momentum and place in the data.

    Also where the weights were spread over two ps: a checkpoint has them in one piece.
    """
    log = tmp_path / "log"

    def training(steps, **more):
        return Training(epochs=-1, steps=steps, log_dir=str(log), **more)

    finished(tmp_path / "ps", 2, 2, [], training(5, spread=True))
    assert dict(tf.train.list_variables(str(log)))["w/Momentum"] == [3, 1]
    check_weights(log, reference(57, 10, (5, 2, 1)))
    process = alone(tmp_path / "alone", training(8))
    assert "model.ckpt-5" in process.log
    check_weights(log, reference(57, 10, (5, 2, 1), (3, 1, 1)))
    finished(tmp_path / "collective", 2, 0, [], training(12))
    check_weights(log, reference(57, 10, (5, 2, 1), (3, 1, 1), (4, 2, 1)))
    finished(tmp_path / "towers", 2, 2, ["--num_gpus=2"], training(15, spread=True))
    check_weights(log, reference(57, 10, (5, 2, 1), (3, 1, 1), (4, 2, 1), (3, 2, 2)))
    assert saved_steps(log) == [0, 5, 8, 12, 15]


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ps", "flags", "shard"),
    [(1, [], ""), (0, [], ""), (1, ["--sync_replicas=False"], ""), (0, [], "rank"), (1, [], "Dataset")],
    ids=["sync", "collective", "async", "by rank and size", "by Dataset.shard"],
)
def test_every_sample_is_seen_once(tmp_path, ps, flags, shard):
    """Also where the order is a shuffle without a seed of the script's, and where the script shards by itself."""
    done = finished(tmp_path, 2, ps, flags, Training(epochs=2, shuffle=True, seen=True, shard=shard))
    seen = [done[f"worker {worker}"].result["seen"] for worker in range(2)]
    assert sorted([*seen[0], *seen[1]]) == sorted([*range(57)] * 2)
    assert [len(part) for part in seen] == ([57, 57] if not shard else [58, 56])
    if shard:
        assert all(number % 2 == worker for worker in range(2) for number in seen[worker])
        return
    # The workers take turns in one order of all samples: its halves are the epochs.
    order = [number for pair in zip(*seen, strict=True) for number in pair]
    assert sorted(order[:57]) == sorted(order[57:]) == list(range(57))
    assert order[:57] not in (list(range(57)), order[57:])


OUR_DATA_SETS = """
import json, os, sys
import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf
from moxing.tensorflow.executor.specs import ModelSpec

results = []


def train(input_fn, batch_size):
    seen = []

    def model_fn(inputs, mode):
        weight = tf.get_variable('w', shape=[], initializer=tf.zeros_initializer())
        return ModelSpec(loss=tf.square(weight - 1.0), log_info={'w': weight}, output_info={'seen': inputs[0]})

    mox.run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.1),
            output_fn=lambda outputs: seen.extend(value for output in outputs for value in output['seen'].ravel()),
            output_every_n_steps=1, run_mode='TRAIN', batch_size=batch_size, max_number_of_steps=1000)
    results.append([value.decode() if isinstance(value, bytes) else int(value) for value in seen])


def photos(batch_size):
    metadata = mox.ImageClassificationRawMetadata('photos')
    dataset = mox.ImageClassificationRawDataset(metadata, batch_size=batch_size, num_epochs=1, image_size=(4, 4))
    return dataset.get(['image_name', 'image'])


def records():
    metadata = mox.ImageClassificationTFRecordMetadata('records', '*.tfrecord', num_classes=29)
    dataset = mox.ImageClassificationTFRecordDataset(metadata, num_epochs=2, image_size=(4, 4))
    return dataset.get(['label', 'image'])


def batches():
    def generate():
        for number in range(11):
            yield [2 * number, 2 * number + 1]
    return tf.data.Dataset.from_generator(generate, tf.int64, [None])


train(lambda mode: photos(None), 3)
train(lambda mode: photos(3), None)
train(lambda mode: records(), 4)
train(lambda mode: batches(), None)
print('RESULT', json.dumps(results), flush=True)
"""


@pytest.mark.slow
def test_every_sample_of_our_own_data_sets_is_seen_once(tmp_path):
    """Also in batches that do not come out even; a generator is shared out by the batch."""
    for number in range(23):
        path = tmp_path / "photos" / f"class{number % 3}" / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (5, 6), (number, 0, 0)).save(path)
    photo = path.read_bytes()
    (tmp_path / "records").mkdir()
    for part, numbers in enumerate([range(10), range(10, 29)]):
        with tf.python_io.TFRecordWriter(str(tmp_path / "records" / f"{part}.tfrecord")) as writer:
            for number in numbers:
                feature = {
                    "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[photo])),
                    "image/format": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"png"])),
                    "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    script = tmp_path / "train.py"
    script.write_text(OUR_DATA_SETS)
    done = finished(tmp_path, 2, 1, [], script=script)
    parts = list(zip(done["worker 0"].result, done["worker 1"].result, strict=True))
    photos = [f"{number:02d}.png" for number in range(23)]
    expected = [photos, photos, sorted([*range(29)] * 2), list(range(22))]
    for place, (parts_of_workers, whole) in enumerate(zip(parts, expected, strict=True)):
        assert sorted([*parts_of_workers[0], *parts_of_workers[1]]) == whole, place
        assert all(parts_of_workers), place
    assert parts[3][1] == [number for batch in range(1, 11, 2) for number in (2 * batch, 2 * batch + 1)]


# --- ends and stops ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param([], id="all count"),
        pytest.param(["--chief_inc_global_step=True"], id="the chief counts", marks=pytest.mark.slow),
    ],
)
def test_async_workers_end_near_the_target(tmp_path, flags):
    log = tmp_path / "log"
    training = Training(epochs=-1, steps=90, log_dir=str(log), delay=0.001, every=10, together=True)
    done = finished(tmp_path, 3, 2, ["--sync_replicas=False", *flags], training)
    trained, bias, step = weights(log)
    results = [done[f"worker {worker}"].result["runs"][0] for worker in range(3)]
    steps = [result["samples"] // 7 for result in results]
    assert all(steps)
    if flags:
        assert step == steps[0] == 90
    else:
        assert step == sum(steps)
        assert 90 <= step <= 92
    # Steps that only the others have begun do not count, but they are done before the chief saves.
    assert results[0]["checkpoint"] == str(log / f"model.ckpt-{step}")
    assert saved_steps(log) == [0, step]


@pytest.mark.slow
@pytest.mark.parametrize("ps", [1, 0], ids=["sync", "collective"])
def test_sigterm_to_one_worker_stops_all_at_the_same_step(tmp_path, ps):
    log = tmp_path / "log"
    training = Training(epochs=-1, log_dir=str(log), save=20, every=1, delay=0.002)
    with job(tmp_path, 2, ps, [], training) as running:
        running.wait_until(lambda: len(saved_steps(log)) > 1)
        running["worker 1"].send(signal.SIGTERM)
        codes = running.wait()
    assert codes == {"worker 0": 143, "worker 1": 143, **({"ps 0": 0} if ps else {})}, running.logs
    last = weights(log)[2]
    assert [max(running[f"worker {worker}"].losses) for worker in range(2)] == [last - 1] * 2
    assert f"Stopped by signal 15: saved {log / 'model.ckpt'}-{last}" in running["worker 0"].log
    check_weights(log, reference(57, 2000, (last, 2, 1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "victim", [pytest.param(0, id="the chief", marks=pytest.mark.slow), pytest.param(1, id="another")]
)
def test_sigterm_to_one_async_worker_stops_all(tmp_path, victim):
    """Each at its own step, and the chief saves."""
    log = tmp_path / "log"
    training = Training(epochs=-1, log_dir=str(log), save=20, delay=0.002, together=True)
    with job(tmp_path, 2, 1, ["--sync_replicas=False"], training) as running:
        running.wait_until(lambda: len(saved_steps(log)) > 1)
        running[f"worker {victim}"].send(signal.SIGTERM)
        codes = running.wait()
    assert codes == {"worker 0": 143, "worker 1": 143, "ps 0": 0}, running.logs
    # The other worker may do a step while the chief saves: the name is that of the step before.
    assert f"Stopped by signal 15: saved {log / 'model.ckpt'}-{saved_steps(log)[-1]}" in running["worker 0"].log


@pytest.mark.parametrize("ps", [1, 0], ids=["sync", "collective"])
def test_a_hook_of_one_worker_stops_all_at_the_same_step(tmp_path, ps):
    log = tmp_path / "log"
    training = Training(epochs=-1, log_dir=str(log), every=1, stop_at=6, stop_on=1)
    done = finished(tmp_path, 2, ps, [], training)
    last = weights(log)[2]
    assert 6 <= last < 1000
    assert [max(done[f"worker {worker}"].losses) for worker in range(2)] == [last - 1] * 2
    assert [done[f"worker {worker}"].result["runs"][0]["global_step"] for worker in range(2)] == [last] * 2
    check_weights(log, reference(57, 300, (last, 2, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("ps", [1, 0], ids=["sync", "collective"])
def test_two_trainings_and_an_evaluation_in_one_script(tmp_path, ps):
    """The second training goes on from the first; only the chief evaluates."""
    log = tmp_path / "log"
    training = Training(epochs=-1, steps=4, runs=2, evaluate=True, log_dir=str(log), every=1)
    done = finished(tmp_path, 2, ps, [], training)
    check_weights(log, reference(57, 10, (8, 2, 1)))
    chief, other = (done[f"worker {worker}"].result["runs"] for worker in range(2))
    assert [(run["mode"], run["global_step"]) for run in chief] == [("TRAIN", 4), ("TRAIN", 8), ("EVAL", 8)]
    assert [(run["mode"], run["global_step"]) for run in other] == [("TRAIN", 4), ("TRAIN", 8), ("EVAL", 0)]
    assert [run["samples"] for run in (chief[2], other[2])] == [57, 0]
    assert "worker 1 does not run EVAL; returning." in done["worker 1"].log
    assert "[EVAL]" in done["worker 0"].log and "[EVAL]" not in done["worker 1"].log


@pytest.mark.slow
def test_a_controller_serves_until_the_workers_have_ended(tmp_path):
    ports = free_ports(3)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    flags = [f"--worker_hosts={addresses[0]},{addresses[1]}", f"--controller_host={addresses[2]}", "--ps_hosts="]
    environment = {"JOB": Training(log_dir=str(tmp_path / "log")).text()}
    roles = [("worker", 0), ("worker", 1), ("controller", 0)]
    running = Job([])
    try:
        for kind, index in roles:
            words = [*flags, f"--job_name={kind}", f"--task_index={index}"]
            running.processes[f"{kind} {index}"] = start(tmp_path, f"{kind} {index}", words, environment=environment)
        codes = running.wait()
    finally:
        running.kill()
    assert set(codes.values()) == {0}, running.logs
    check_weights(tmp_path / "log", reference(57, 1, (None, 2, 1)))
