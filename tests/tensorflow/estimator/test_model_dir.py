"""A model_dir on a store: the same files as on a local disk, and a killed training resumes on an empty disk."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import tensorflow.compat.v1 as tf

import moxing.framework.file as mox_file
from helpers.estimator_models import X, assert_equal, input_fn, make, model_fn, weights
from moxing.tensorflow import estimator
from moxing.tensorflow.estimator import model_dir


def names(url):
    return sorted(mox_file.list_directory(url, recursive=True)) if mox_file.exists(url) else []


def checkpoints(url):
    found = re.findall(r'all_model_checkpoint_paths: "model.ckpt-(\d+)"', mox_file.read(url + "/checkpoint"))
    return [int(step) for step in found]


def download(url, path):
    mox_file.copy_parallel(url, str(path))
    return path


def evaluation():
    return input_fn().take(5)


def receiver_fn():
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    return estimator.export.TensorServingInputReceiver(x, {"x": x})


def with_signature(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)
    if mode != estimator.ModeKeys.PREDICT:
        return spec
    return spec._replace(export_outputs={"serving_default": estimator.export.PredictOutput(spec.predictions)})


@pytest.mark.slow
def test_the_same_files_as_on_a_local_disk(s3_folder, stages, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    tf.logging.set_verbosity(tf.logging.INFO)
    there, here = make(s3_folder + "/"), make(tmp_path / "local")
    for one in (there, here):
        one.train(input_fn, max_steps=60)
        one.evaluate(evaluation)
    files = [path.relative_to(tmp_path / "local") for path in (tmp_path / "local").rglob("*") if path.is_file()]
    without_time = sorted(str(path) for path in files if "tfevents" not in path.name)
    assert [name for name in names(s3_folder) if "tfevents" not in name and not name.endswith("eval")] == without_time
    assert any(name.startswith("eval/events") for name in names(s3_folder))
    assert checkpoints(s3_folder) == [0, 25, 50, 60]
    assert_equal(weights(download(s3_folder, tmp_path / "copy")), weights(tmp_path / "local"))
    # TensorFlow's functions need a path.
    assert tf.train.latest_checkpoint(there.model_dir) == there.latest_checkpoint()
    lines = [record.getMessage() for record in caplog.records]
    assert f"Saving checkpoints for 60 into {s3_folder}/model.ckpt." in lines
    assert not [line for line in lines if str(stages) in line and "Using config" not in line]


@pytest.mark.slow
def test_an_estimator_of_another_process_reads_from_the_store(s3_folder, stages, tmp_path):
    make(s3_folder).train(input_fn, max_steps=30)
    model_dir.close_stages()
    # In the configuration, in the constructor, in both.
    config = estimator.RunConfig(model_dir=s3_folder)
    params = {"dropout": False}
    one = estimator.Estimator(model_fn, s3_folder + "/", config, params)
    assert estimator.Estimator(model_fn, None, config, params).model_dir == one.model_dir
    assert one.evaluate(evaluation)["global_step"] == 30
    assert len(list(one.predict(lambda: tf.data.Dataset.from_tensors(X[:3])))) == 3
    assert one.get_variable_value("global_step") == 30 and "dense/kernel" in one.get_variable_names()
    with pytest.raises(ValueError, match="set both in constructor and `RunConfig`"):
        estimator.Estimator(model_fn, s3_folder + "/other", config, params)
    # Meanwhile another process trains.
    local = download(s3_folder, tmp_path / "elsewhere")
    make(local).train(input_fn, max_steps=40)
    mox_file.copy_parallel(str(local), s3_folder)
    assert one.evaluate(evaluation)["global_step"] == 40
    assert checkpoints(s3_folder)[-1] == 40
    older = one.evaluate(evaluation, checkpoint_path=s3_folder + "/model.ckpt-25")
    assert older["global_step"] == 25


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_training_resumes_on_an_empty_disk(s3_folder, stages, tmp_path, request, number):
    program = request.config.rootpath / "tests" / "helpers" / "estimator_program.py"
    words = [sys.executable, program, s3_folder, "100000", "0.005"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    started = subprocess.Popen(
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        deadline = time.monotonic() + 120
        while not mox_file.exists(s3_folder + "/checkpoint") or checkpoints(s3_folder)[-1] < 50:
            assert started.poll() is None and time.monotonic() < deadline, started.communicate()[0]
            time.sleep(0.05)
        started.send_signal(number)
        output, _ = started.communicate(timeout=60)
    finally:
        started.kill()
    assert started.returncode == (-9 if number == signal.SIGKILL else 143), output
    reached = checkpoints(s3_folder)[-1]
    if number == signal.SIGTERM:
        assert f"Stopped by signal 15: saved {s3_folder}/model.ckpt-{reached}" in output
        assert not list(tmp_path.glob("moxing-*"))
    kept = checkpoints(s3_folder)
    make(s3_folder).train(input_fn, max_steps=reached + 5)
    # Old checkpoints stay until there are too many.
    assert checkpoints(s3_folder) == [*kept, reached + 5][-5:]
    make(tmp_path / "whole").train(input_fn, max_steps=reached + 5)
    assert_equal(weights(download(s3_folder, tmp_path / "copy")), weights(tmp_path / "whole"))


@pytest.mark.slow
def test_train_and_evaluate_with_exporters(s3_folder, stages, tmp_path):
    config = estimator.RunConfig(model_dir=s3_folder, save_checkpoints_steps=25, tf_random_seed=5)
    one = estimator.Estimator(with_signature, config=config, params={"dropout": False})
    best = estimator.BestExporter(serving_input_receiver_fn=receiver_fn)
    results, _ = estimator.train_and_evaluate(
        one,
        estimator.TrainSpec(input_fn, max_steps=100),
        estimator.EvalSpec(evaluation, steps=None, throttle_secs=0, exporters=[best]),
    )
    assert results["global_step"] == 100
    assert any(re.fullmatch(r"export/best_exporter/\d+/saved_model.pb", name) for name in names(s3_folder))
    model_dir.close_stages()
    again = estimator.Estimator(with_signature, config=config, params={"dropout": False})
    again.evaluate(evaluation)
    assert len([name for name in os.listdir(again.eval_dir()) if "tfevents" in name]) == 2


def test_exports(s3_folder, stages, tmp_path):
    one = estimator.Estimator(with_signature, s3_folder + "/model", params={"dropout": False})
    one.train(input_fn, max_steps=5)
    for base in (s3_folder + "/model/export", s3_folder + "/elsewhere/"):
        written = one.export_saved_model(base, receiver_fn).decode()
        assert written.startswith(base.rstrip("/") + "/1")
        local = download(written, tmp_path / base.rstrip("/").rpartition("/")[2])
        with tf.Graph().as_default(), tf.Session() as session:
            assert tf.saved_model.load(session, ["serve"], str(local)).signature_def["serving_default"]
    local = one.export_saved_model(str(tmp_path / "here"), receiver_fn).decode()
    assert os.path.exists(f"{local}/saved_model.pb")


@pytest.mark.slow
def test_a_damaged_checkpoint_on_the_store_is_passed_over(s3_folder, stages, caplog):
    make(s3_folder).train(input_fn, max_steps=60)
    model_dir.close_stages()
    mox_file.write(s3_folder + "/model.ckpt-60.data-00000-of-00001", "damaged")
    make(s3_folder).train(input_fn, steps=5)
    assert "model.ckpt-60 is damaged" in caplog.text
    assert checkpoints(s3_folder)[-2:] == [50, 55]


@pytest.mark.slow
def test_warm_starts_from_the_store(s3_folder, stages, tmp_path):
    make(s3_folder).train(input_fn, max_steps=30)
    model_dir.close_stages()
    trained = weights(download(s3_folder, tmp_path / "copy"))
    settings = estimator.WarmStartSettings(s3_folder + "/model.ckpt-30")
    for number, start in enumerate((s3_folder, settings)):
        config = estimator.RunConfig(model_dir=str(tmp_path / str(number)))
        estimator.Estimator(model_fn, config=config, params={"dropout": False}, warm_start_from=start).train(
            input_fn, max_steps=1
        )
        first = tf.train.load_variable(str(tmp_path / str(number) / "model.ckpt-0"), "dense/kernel")
        assert first.tolist() == trained["dense/kernel"].tolist()


@pytest.mark.slow
def test_what_the_user_writes_into_the_directory_is_uploaded_with_the_next_call(s3_folder, stages):
    one = make(s3_folder)
    one.train(input_fn, max_steps=5)
    with open(os.path.join(one.model_dir, "notes.txt"), "w") as stream:
        stream.write("mine")
    one.evaluate(evaluation)
    assert mox_file.read(s3_folder + "/notes.txt") == "mine"


def test_errors_name_the_url(s3_folder, stages):
    with pytest.raises(FileNotFoundError, match="no-such-bucket"):
        make("s3://no-such-bucket/model").train(lambda: pytest.fail("too late"), max_steps=5)
    with pytest.raises(ValueError, match=r"RunConfig\(model_dir\)='nosuch://host/model'.*nosuch"):
        make("nosuch://host/model")

    def fails():
        raise ValueError(f"in {one.model_dir}")

    one = make(s3_folder)
    with pytest.raises(ValueError, match=f"in {s3_folder}$"):
        one.train(fails, max_steps=5)
