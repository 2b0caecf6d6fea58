"""The upload behind a training: in which order, how often, and what is there when a process is killed in the middle."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from digits_model import train, weights
from uploaded import named, puts, save_into, step, wait_for

import moxing.tensorflow as mox
from helpers.warm import Program, Surroundings, WarmProcess
from moxing.tensorflow.executor.store.uploads import Uploader, UploadError

SCRIPT = """
import sys
import numpy as np
import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf

DATA = np.random.RandomState(0).rand(400, 8).astype(np.float32)

def input_fn(mode):
    dataset = tf.data.Dataset.from_tensor_slices(DATA).shuffle(100).repeat()
    return tf.data.make_one_shot_iterator(dataset).get_next()

def model_fn(inputs, mode):
    weight = tf.get_variable("w", initializer=tf.ones([8, 1]))
    ballast = tf.get_variable("ballast", initializer=tf.random.stateless_uniform([50000], [1, 2]))
    predicted = tf.matmul(inputs[0], weight)
    loss = tf.reduce_mean(tf.square(predicted - 3.0)) + tf.reduce_mean(tf.square(ballast))
    spec = mox.ExportSpec({"x": inputs[0]}, {"y": predicted}, version="model")
    return mox.ModelSpec(loss=loss, log_info={"loss": loss}, export_spec=spec)

log_dir, steps, save = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
mox.run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn("momentum", 0.01),
        run_mode="TRAIN", batch_size=16, log_dir=log_dir, max_number_of_steps=steps,
        save_model_steps=save, log_every_n_steps=50, export_model=True)
"""


def start(log_dir, steps, save, temporary, **environment):
    temporary.mkdir()
    program = Program("code", SCRIPT, (str(log_dir), str(steps), str(save)))
    environment = {**os.environ, "TMPDIR": str(temporary), "MOX_SILENT_MODE": "0", **environment}
    return WarmProcess(program, Surroundings(environment=environment), stderr=subprocess.PIPE)


def test_the_graph_of_an_export_comes_last(proxy, s3_folder):
    train(s3_folder, 2, export_model=True)
    targets = [target.partition("?")[0] for method, target in proxy.requests if method == "PUT" and "/1/" in target]
    assert len(targets) >= 3
    assert [target.endswith("/1/saved_model.pb") for target in targets] == [False] * (len(targets) - 1) + [True]


def test_without_the_rest_of_an_export_its_graph_does_not_come(proxy, s3_folder):
    proxy.fail("500", times=float("inf"), match=lambda method, target: "variables.index" in target)
    with pytest.raises(UploadError, match=r"1/variables/variables\.index"):
        train(s3_folder, 2, export_model=True)
    assert not mox.file.exists(s3_folder + "/1/saved_model.pb")
    assert named(s3_folder) == ["model.ckpt-0", "model.ckpt-2"]


@pytest.mark.slow
def test_after_a_failure_that_took_long_the_next_attempt_is_soon(s3_folder, stage, mirror, monkeypatch):
    def send(self, path, relative):
        time.sleep(1.5)
        raise OSError("timed out")

    monkeypatch.setattr(Uploader, "send", send)
    save_into(stage, 1, b"x")
    wait_for(lambda: mirror.schedule.seconds_until("checkpoint") is not None)
    assert mirror.schedule.seconds_until("checkpoint") <= 8
    monkeypatch.undo()


@pytest.mark.slow
def test_event_files_come_where_checkpoints_are_written_faster_than_sent(s3_folder, stage, mirror, monkeypatch):
    really_send = Uploader.send

    def send(self, path, relative):
        if ".data-" in relative:
            time.sleep(0.5)
        really_send(self, path, relative)

    monkeypatch.setattr(Uploader, "send", send)
    (stage / "events").write_text("x")
    for number in range(200):
        save_into(stage, number, b"x")
        time.sleep(0.1)
        if mox.file.exists(s3_folder + "/events"):
            break
    assert mox.file.exists(s3_folder + "/events")
    assert len(named(s3_folder)) < number
    monkeypatch.undo()


def test_event_files_appear_while_training_runs(s3_folder):
    sizes = []

    def look(outputs):
        wait_for(lambda: bool(events()), 20)
        sizes.append(sum(mox.file.get_size(s3_folder + "/" + name) for name in events()))

    def events():
        there = mox.file.list_directory(s3_folder) if mox.file.exists(s3_folder) else []
        return [name for name in there if "tfevents" in name]

    train(s3_folder, 6, save_summary_steps=1, output_fn=look, output_every_n_steps=3)
    assert sizes[0] > 0
    assert len(events()) == 1
    assert mox.file.get_size(s3_folder + "/" + events()[0]) > sizes[0]


@pytest.mark.slow
def test_a_file_that_grows_is_sent_seldom_where_sending_takes_long(proxy, s3_folder, stage, mirror):
    proxy.fail("slow_upload", times=float("inf"), match=lambda method, target: "events" in target)
    until = time.monotonic() + 8
    with open(stage / "events", "wb") as stream:
        stream.write(os.urandom(20_000))  # takes a second
        while time.monotonic() < until:
            stream.write(os.urandom(1000))
            stream.flush()
            time.sleep(0.1)
    assert puts(proxy).count("events") == 1
    proxy.fail("", times=0)
    mirror.finish()
    assert mox.file.get_size(s3_folder + "/events") == (stage / "events").stat().st_size


def test_a_signal_saves_uploads_and_leaves(s3_folder, tmp_path):
    with start(s3_folder, 10**9, 10**9, tmp_path / "temporary") as process:
        try:
            for line in process.stderr:
                if "step: 100(" in line:
                    break
            process.send_signal(signal.SIGTERM)
            output = process.stderr.read()
            assert process.wait(timeout=60) == 143
        finally:
            process.kill()
    newest = named(s3_folder)[-1]
    assert step(newest) > 100
    assert f"Stopped by signal 15: saved {s3_folder}/{newest}. Run the same command again to resume from it." in output
    assert not list((tmp_path / "temporary").glob("moxing-*"))


def test_a_second_signal_ends_the_upload_and_keeps_the_files(proxy, s3_folder, tmp_path):
    proxy.fail("slow_upload", times=float("inf"), match=lambda method, target: ".data-" in target)
    with start(s3_folder, 10**9, 10**9, tmp_path / "temporary", S3_ENDPOINT=proxy.endpoint) as process:
        try:
            for line in process.stderr:
                if "step: 100(" in line:
                    break
            process.send_signal(signal.SIGINT)
            for line in process.stderr:
                if "Stopped by signal 2" in line:
                    break
            # The last checkpoint is written, and the upload of the first one still takes seconds.
            (marker,) = (tmp_path / "temporary").glob("moxing-*/log/checkpoint")
            wait_for(lambda: marker.read_text().count("all_model") == 2)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            proxy.fail("", times=0)
            output = process.stderr.read()
            assert process.wait(timeout=60) not in (0, 130)
        finally:
            process.kill()
    (kept,) = (tmp_path / "temporary").glob("moxing-*")
    assert f"files were not uploaded to {s3_folder}; they are kept in {kept}/log." in output
    assert list((kept / "log").glob("model.ckpt-*.index"))


@pytest.mark.slow
def test_in_a_cluster_only_the_chief_writes(s3_folder, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "moxing", "run", "--workers", "2", "train.py", s3_folder]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    for steps in ("20", "30"):
        done = subprocess.run(
            [*command, steps, "10"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert named(s3_folder)[-1] == f"model.ckpt-{steps}"
        mox.file.remove(s3_folder + "/model", recursive=True)  # its name is to be free again
    assert f"Restoring parameters from {s3_folder}/model.ckpt-20" in done.stdout + done.stderr
    assert not list((tmp_path / "temporary").glob("moxing-*-*"))


def worker_of(launcher):
    """The process id of worker 1 of a launcher."""
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            words = (directory / "cmdline").read_bytes().decode().split("\0")
            if parent == launcher and "--job_name=worker" in words and "--task_index=1" in words:
                return int(directory.name)
    return None


@pytest.mark.slow
def test_a_cluster_goes_on_from_the_store_after_a_death(s3_folder, tmp_path):
    """The job is started again as a whole, each time with a new local directory."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "moxing", "run", "--workers", "2", "--max_restarts", "2", "train.py"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen(
        [*command, s3_folder, "3000", "100"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as launcher:
        try:
            wait_for(lambda: len(named(s3_folder)) >= 2, 100)
            os.kill(worker_of(launcher.pid), signal.SIGKILL)
            output = launcher.communicate(timeout=200)[0]
        finally:
            launcher.kill()
    assert launcher.returncode == 0, output
    assert "restart 1 of 2 of the whole job" in output
    assert re.search(rf"Restoring parameters from {s3_folder}/model.ckpt-[1-9]", output)
    assert named(s3_folder)[-1] == "model.ckpt-3000"
    assert not list((tmp_path / "temporary").glob("moxing-*-*"))


@pytest.mark.slow
def test_killed_in_the_middle_of_an_upload_it_goes_on_with_an_empty_disk(proxy, s3_folder, tmp_path):
    """The last checkpoint that was committed counts, and from there on everything is as if nothing had happened."""
    endpoint = {"S3_ENDPOINT": proxy.endpoint}
    with start(s3_folder, 10**9, 50, tmp_path / "first", **endpoint) as process:
        try:
            wait_for(lambda: len(named(s3_folder)) >= 2)

            # The data of a checkpoint takes 10 s from here on.
            proxy.fail("slow_upload", times=float("inf"), match=lambda method, target: ".data-" in target)
            begun = len(proxy.requests)
            wait_for(lambda: any(".data-" in target for _, target in proxy.requests[begun:]))
            time.sleep(0.5)
            process.kill()
            assert process.wait() == -signal.SIGKILL
        finally:
            process.kill()
    proxy.fail("", times=0)
    cut = next(target for _, target in proxy.requests[begun:] if ".data-" in target).rpartition("/")[2]
    committed = named(s3_folder)[-1]
    assert cut.partition(".data")[0] not in named(s3_folder)
    assert not mox.file.exists(f"{s3_folder}/{cut}")
    # What it had written on its disk is not needed.
    assert list((tmp_path / "first").glob("moxing-*/log/model.ckpt-*"))
    mox.file.copy_parallel(s3_folder, str(tmp_path / "straight"))
    target = step(committed) + 75
    for log_dir, temporary in ((s3_folder, "second"), (tmp_path / "straight", "third")):
        with start(log_dir, target, 50, tmp_path / temporary, **endpoint) as process:
            output = process.communicate(timeout=120)[1]
            assert process.returncode == 0, output
        assert f"Restoring parameters from {log_dir}/{committed}" in output
    assert step(named(s3_folder)[-1]) == target
    assert not list((tmp_path / "second").glob("moxing-*"))

    mox.file.copy_parallel(s3_folder, str(tmp_path / "copy"))
    left, right = (weights(tmp_path / name / f"model.ckpt-{target}") for name in ("copy", "straight"))
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert value.tobytes() == right[name].tobytes(), name
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], str(tmp_path / "copy" / "model"))
        signature = meta.signature_def["serving_default"]
        y = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: np.ones([1, 8], np.float32)})
    np.testing.assert_allclose(y[0, 0], left["w"].sum(), rtol=1e-5)
