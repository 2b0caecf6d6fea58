"""Runs whose log_dir or checkpoint_path is a url: the same files on the store as on a local disk."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from digits_model import evaluate, model_fn, train, weights
from line_problem import line_model
from line_problem import run as run_line

import moxing.tensorflow as mox
from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.executor import UploadError


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The temporary directory: every test leaves it as it was, or says why not."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield directory


def stages(temporary):
    """The directories of runs that are there."""
    return sorted(temporary.glob("moxing-*"))


@pytest.fixture
def lines(caplog):
    """The log lines so far."""
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records]


def names(url):
    return sorted(mox.file.list_directory(url, recursive=True, skip_dir=True))


def checkpoints(url):
    """The steps that the marker names."""
    text = mox.file.read(url + "/checkpoint")
    return [int(line.split("-")[-1].rstrip('"')) for line in text.splitlines() if line.startswith("all_")]


def download(url, target):
    mox.file.copy_parallel(url, str(target))
    return target


def assert_same_weights(left, right):
    left, right = weights(left), weights(right)
    assert left.keys() == right.keys()
    for name, value in left.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)


def test_same_files_as_on_a_local_disk(s3_folder, tmp_path, lines, temporary):
    settings = {"save_model_steps": 10, "save_summary_steps": 5, "export_model": True}
    mox.set_flag("keep_checkpoint_max", 2)
    there = train(s3_folder.replace("s3://tests/", "s3://tests//") + "//", 25, **settings)
    assert stages(temporary) == []
    said = lines()
    here = train(tmp_path / "log", 25, **settings)
    local = [path.relative_to(tmp_path / "log") for path in (tmp_path / "log").rglob("*") if path.is_file()]
    without_time = [name for name in names(s3_folder) if "tfevents" not in name]
    assert without_time == sorted(str(path) for path in local if "tfevents" not in path.name)
    assert len(names(s3_folder)) == len(local)
    assert mox.file.read(s3_folder + "/checkpoint") == (tmp_path / "log" / "checkpoint").read_text()
    assert there.checkpoint_path == s3_folder + "/model.ckpt-25"
    assert there.export_path == s3_folder + "/1"
    assert here.export_path == str(tmp_path / "log" / "1")
    assert f"Saving checkpoints for 25 into {s3_folder}/model.ckpt." in said
    assert f"SavedModel written to: {s3_folder}/1/saved_model.pb" in said
    assert not [line for line in said if str(temporary) in line]


def test_goes_on_from_the_store(s3_folder, tmp_path, lines):
    train(s3_folder, 13)
    result = train(s3_folder, 40)
    assert result.global_step == 40
    assert f"Restoring parameters from {s3_folder}/model.ckpt-13" in lines()
    assert checkpoints(s3_folder) == [0, 13, 40]
    download(s3_folder, tmp_path / "copy")
    position = json.loads((tmp_path / "copy" / "model.ckpt-40.moxing.json").read_text())
    assert position["elements"] == 40 * 16
    # A run that goes on keeps the first one's.
    assert position["seed"] == json.loads((tmp_path / "copy" / "model.ckpt-13.moxing.json").read_text())["seed"]


def test_seeded_run_equals_a_local_one(s3_folder, tmp_path):
    train(tmp_path / "local", 1)
    mox.file.copy_parallel(str(tmp_path / "local"), s3_folder)
    train(tmp_path / "local", 30)
    train(s3_folder, 17)
    train(s3_folder, 30)
    download(s3_folder, tmp_path / "copy")
    assert_same_weights(tmp_path / "local" / "model.ckpt-30", tmp_path / "copy" / "model.ckpt-30")


def test_only_the_newest_are_kept_over_several_runs(s3_folder):
    mox.set_flag("keep_checkpoint_max", 2)
    train(s3_folder, 5)
    train(s3_folder, 10)
    train(s3_folder, 15)
    assert checkpoints(s3_folder) == [10, 15]
    assert {name.split(".")[1] for name in names(s3_folder) if name.startswith("model.ckpt")} == {"ckpt-10", "ckpt-15"}


def test_evaluation_and_export_from_the_store(s3_folder, tmp_path, lines):
    train(s3_folder, 20)
    before = names(s3_folder)
    by_log_dir = evaluate("", log_dir=s3_folder, export_model=True)
    by_path = evaluate(s3_folder)
    by_prefix = evaluate(s3_folder + "/model.ckpt-20")
    assert by_log_dir.log_info == by_path.log_info == by_prefix.log_info
    assert by_path.checkpoint_path == s3_folder + "/model.ckpt-20"
    assert by_log_dir.export_path == s3_folder + "/1"
    assert {name for name in names(s3_folder) if name not in before} == {
        name for name in names(s3_folder) if name.startswith("1/")
    }
    assert f"From {s3_folder}/model.ckpt-20: 5 variables restored, 0 skipped by patterns, 0 missing there." in lines()
    directory = download(s3_folder + "/1", tmp_path / "exported")
    with tf.Graph().as_default(), tf.Session() as session:
        assert tf.saved_model.load(session, ["serve"], str(directory)).signature_def["predict_object"]


def test_a_local_run_begins_with_a_checkpoint_of_the_store(s3_folder, tmp_path, lines):
    train(s3_folder, 5)
    train(tmp_path / "log", 8, checkpoint_path=s3_folder + "/model.ckpt-5.index")
    assert any(line.startswith(f"From {s3_folder}/model.ckpt-5: ") for line in lines())
    assert os.path.exists(tmp_path / "log" / "model.ckpt-8.index")


def test_restart_of_a_local_log_dir_with_a_checkpoint_of_the_store(s3_folder, tmp_path):
    train(s3_folder, 5)
    train(tmp_path / "log", 9)
    mox.set_flag("restart", True)
    mox.set_flag("checkpoint_exclude_patterns", "global_step")
    assert train(tmp_path / "log", 3, checkpoint_path=s3_folder).global_step == 3
    assert (tmp_path / "log" / "before_restart_1" / "model.ckpt-9.index").exists()


def test_a_checkpoint_of_2016_on_the_store(s3_folder, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", initializer=tf.constant(7.0))
        session.run(tf.global_variables_initializer())
        tf.train.Saver(write_version=tf.train.SaverDef.V1).save(session, str(tmp_path / "old"), write_state=False)
    mox.file.copy(str(tmp_path / "old"), s3_folder + "/old")
    result = run_line("EVAL", checkpoint_path=s3_folder + "/old")
    assert result.log_info == {"w": 7.0}
    assert result.checkpoint_path == s3_folder + "/old"


@pytest.mark.parametrize("name", ["", "/model.ckpt-7"])
def test_a_checkpoint_that_is_not_there(s3_folder, name):
    with pytest.raises(
        ValueError, match=f"checkpoint_path='{s3_folder}{name}': there is no such|the directory holds no"
    ):
        evaluate(s3_folder + name)


def test_without_a_checkpoint_evaluation_says_where_it_looked(s3_folder):
    with pytest.raises(ValueError, match=f"log_dir='{s3_folder}' holds none"):
        run_line("EVAL", log_dir=s3_folder)
    assert not mox.file.exists(s3_folder)


def test_a_damaged_one_is_passed_over(s3_folder, lines):
    train(s3_folder, 5)
    train(s3_folder, 10)
    data = s3_folder + "/model.ckpt-10.data-00000-of-00001"
    content = bytearray(mox.file.read(data, binary=True))
    content[40] ^= 255
    mox.file.write(data, bytes(content), binary=True)
    assert train(s3_folder, 12).global_step == 12
    assert any(line.startswith(f"The checkpoint {s3_folder}/model.ckpt-10 is damaged") for line in lines())
    assert checkpoints(s3_folder) == [0, 5, 10, 12]
    mox.file.remove(s3_folder + "/model.ckpt-12.data-00000-of-00001")
    assert train(s3_folder, 14).global_step == 14
    assert any(line.startswith(f"The checkpoint {s3_folder}/model.ckpt-12 is damaged") for line in lines())


def test_all_damaged_is_an_error(s3_folder):
    train(s3_folder, 1)
    for name in mox.file.glob(s3_folder + "/*.index"):
        mox.file.remove(name)
    with pytest.raises(ValueError, match=f"All 2 checkpoints in {s3_folder} are damaged"):
        train(s3_folder, 2)


@pytest.mark.parametrize("argument", ["log_dir", "checkpoint_path"])
def test_a_training_that_goes_on_meanwhile(proxy, s3_folder, argument):
    """Between the listing and the fetching of the only checkpoint it is replaced by the next one."""
    mox.set_flag("keep_checkpoint_max", 1)
    train(s3_folder, 5)
    looked = []

    def go_on(target, content):
        if target.endswith("/checkpoint") and not looked:
            looked.append(target)
            for name in mox.file.list_directory(s3_folder):
                if name.startswith("model.ckpt-5"):
                    mox.file.rename(f"{s3_folder}/{name}", f"{s3_folder}/{name.replace('-5', '-9')}")
            mox.file.write(s3_folder + "/checkpoint", 'model_checkpoint_path: "model.ckpt-9"\n')
        return content

    proxy.rewrite = go_on
    result = evaluate(**{"checkpoint_path": "", argument: s3_folder})
    assert result.checkpoint_path == s3_folder + "/model.ckpt-9"
    assert looked


def test_without_its_marker_a_checkpoint_does_not_count(s3_folder, lines):
    train(s3_folder, 5)
    mox.file.remove(s3_folder + "/checkpoint")
    train(s3_folder, 7, save_model_secs=None)
    assert checkpoints(s3_folder) == [0, 7]
    assert f"Restoring parameters from {s3_folder}/model.ckpt-5" not in lines()
    assert any(
        line.startswith(f"{s3_folder} holds files of checkpoints and no object 'checkpoint'") for line in lines()
    )


def test_a_marker_names_nothing_outside(s3_folder, tmp_path):
    """Whoever can write to the bucket cannot have files of this machine read or removed."""
    victim = tmp_path / "victim.index"
    victim.write_text("precious")
    mox.file.write(
        s3_folder + "/checkpoint",
        f'model_checkpoint_path: "model.ckpt-3"\nall_model_checkpoint_paths: "{tmp_path}/victim"\n'
        f'all_model_checkpoint_paths: "../../../{tmp_path}/victim"\nall_model_checkpoint_paths: "model.ckpt-3"\n',
    )
    mox.set_flag("keep_checkpoint_max", 1)
    with pytest.raises(ValueError, match="All 3 checkpoints"):
        train(s3_folder, 2)
    train(tmp_path / "log", 1)
    for path in (tmp_path / "log").glob("model.ckpt-1.*"):
        mox.file.copy(str(path), f"{s3_folder}/{path.name.replace('ckpt-1', 'ckpt-3')}")
    train(s3_folder, 5, save_model_steps=1)
    assert victim.read_text() == "precious"


def test_restart_sets_the_checkpoints_aside(s3_folder, lines):
    train(s3_folder, 5)
    mox.set_flag("restart", True)
    assert train(s3_folder, 3).global_step == 3
    # Once in a process: what it has trained since then stays.
    assert train(s3_folder, 4).global_step == 4
    assert f"--restart: moved the checkpoints of {s3_folder} to {s3_folder}/before_restart_1." in lines()
    assert checkpoints(s3_folder) == [0, 3, 4]
    assert checkpoints(s3_folder + "/before_restart_1") == [0, 5]
    mox.set_flag("restart", None)
    assert evaluate(s3_folder + "/before_restart_1").checkpoint_path.endswith("before_restart_1/model.ckpt-5")


def test_labels_and_bad_samples_go_on(s3_folder, tmp_path):
    from PIL import Image

    data = tmp_path / "data"
    for name in ("daisy", "rose"):
        (data / name).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (8, 8), (number * 60, 0, 0)).save(data / name / f"{number}.png")
    (data / "rose" / "bad.png").write_bytes(b"no image")

    def images(mode):
        meta = mox.ImageClassificationRawMetadata(base_dir=str(data))
        dataset = mox.ImageClassificationRawDataset(meta, batch_size=1, num_epochs=1, image_size=(8, 8))
        return dataset.get(["image", "label"])

    settings = {"input_fn": images, "batch_size": None, "log_dir": s3_folder, "model_fn": line_model}
    mox.set_flag("max_bad_samples", "5")
    run_line(**{**settings, "max_number_of_steps": 100})
    assert mox.file.read(s3_folder + "/labels.txt") == "0: daisy\n1: rose\n"
    assert mox.file.read(s3_folder + "/bad_samples.jsonl").count("bad.png") == 1
    (data / "rose" / "worse.png").write_bytes(b"none either")
    run_line(**{**settings, "max_number_of_steps": 200})
    listed = mox.file.read(s3_folder + "/bad_samples.jsonl").splitlines()
    assert [os.path.basename(json.loads(line)["file"]) for line in listed] == ["bad.png", "worse.png"]
    os.rename(data / "daisy", data / "tulip")
    with pytest.raises(ValueError, match=f"{s3_folder}/model.ckpt-.* was trained on.*{s3_folder}/labels.txt"):
        run_line(**{**settings, "max_number_of_steps": 300})


def test_export_versions_that_are_on_the_store_are_taken(s3_folder):
    def versioned(inputs, mode):
        spec = model_fn(inputs, mode)
        spec.export_spec.version = "model"
        return spec

    assert train(s3_folder, 1, export_model=True).export_path == s3_folder + "/1"
    assert train(s3_folder, 2, export_model=True).export_path == s3_folder + "/2"
    train(s3_folder, 3, export_model=True, model_fn=versioned)
    with pytest.raises(AssertionError, match=f"Export directory already exists.*{s3_folder}/model"):
        train(s3_folder, 4, export_model=True, model_fn=versioned)
    # One whose upload was cut off has no saved_model.pb: its name is free.
    mox.file.remove(s3_folder + "/model/saved_model.pb")
    assert train(s3_folder, 4, export_model=True, model_fn=versioned).export_path == s3_folder + "/model"
    assert mox.file.exists(s3_folder + "/model/saved_model.pb")


def test_the_best_checkpoint_goes_on(s3_folder, tmp_path):
    def evaluated(inputs, mode):
        spec = model_fn(inputs, mode)
        hook = mox.BestCheckpointHook({"loss": spec.loss}, "loss", batch_size=16, samples_in_train=80)
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, hooks=[hook])

    train(s3_folder, 10, model_fn=evaluated, inter_mode="EVAL")
    first = checkpoints(s3_folder + "/best")
    train(s3_folder, 30, model_fn=evaluated, inter_mode="EVAL")
    second = checkpoints(s3_folder + "/best")
    assert len(first) == len(second) == 1
    assert second[0] > first[0]
    assert {name.split(".")[1] for name in names(s3_folder + "/best") if "ckpt" in name} == {f"ckpt-{second[0]}"}
    assert any(name.startswith("eval/events") for name in names(s3_folder))


def test_the_trace_of_a_profiler_comes_along(s3_folder):
    def profiled(inputs, mode):
        spec = model_fn(inputs, mode)
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, hooks=[mox.ProfilerHook(start_step=1, steps=2)])

    train(s3_folder, 5, model_fn=profiled)
    assert any(name.startswith("plugins/profile/") for name in names(s3_folder))
    with pytest.raises(ValueError, match="directory='s3://bucket/trace'.*None for log_dir"):
        mox.ProfilerHook(directory="s3://bucket/trace")


def test_best_variables_are_restored_from_the_store(s3_folder):
    """`restore_best` needs the files of the best checkpoint, which an earlier run has written."""

    def stopped(inputs, mode):
        spec = model_fn(inputs, mode)
        hook = mox.EarlyStoppingHook(
            {"loss": spec.loss}, "loss", 16, 80, None, 1, min_delta=100.0, patience=3, restore_best=True
        )
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, hooks=[hook])

    train(s3_folder, 7, model_fn=stopped, inter_mode="EVAL")
    assert checkpoints(s3_folder + "/best") == [5]
    train(s3_folder, 100, model_fn=stopped, inter_mode="EVAL")
    last = checkpoints(s3_folder)[-1]
    assert last < 100
    with tempfile.TemporaryDirectory() as copy:
        mox.file.copy_parallel(s3_folder, copy)
        best, end = weights(f"{copy}/best/model.ckpt-5"), weights(f"{copy}/model.ckpt-{last}")
    np.testing.assert_array_equal(best["hidden/kernel"], end["hidden/kernel"])


def test_an_error_of_the_run_leaves_what_it_saved(s3_folder, temporary):
    def fails(outputs):
        raise ZeroDivisionError("of the script")

    with pytest.raises(ZeroDivisionError, match="of the script"):
        train(s3_folder, 30, save_model_steps=10, output_fn=fails, output_every_n_steps=25)
    assert checkpoints(s3_folder)[-1] == 20
    assert stages(temporary) == []


def test_what_hooks_write_at_the_end_comes_along(s3_folder):
    """A profiler that an error stops writes its trace after everything else."""

    def profiled(inputs, mode):
        spec = model_fn(inputs, mode)
        hook = mox.ProfilerHook(start_step=1, steps=50)
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, output_info=spec.output_info, hooks=[hook])

    def fails(outputs):
        raise ZeroDivisionError("of the script")

    with pytest.raises(ZeroDivisionError):
        train(s3_folder, 30, model_fn=profiled, output_fn=fails, output_every_n_steps=10)
    assert any(name.startswith("plugins/profile/") for name in names(s3_folder))


def test_hooks_hear_of_the_end_when_all_is_there(s3_folder):
    heard = []

    def with_end(inputs, mode):
        spec = model_fn(inputs, mode)
        hook = mox.RunEndHook(lambda end: heard.append((end.result.checkpoint_path, checkpoints(s3_folder))))
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, hooks=[hook])

    train(s3_folder, 5, model_fn=with_end)
    assert heard == [(s3_folder + "/model.ckpt-5", [0, 5])]


def test_a_store_that_refuses_is_told_before_the_first_step(s3_folder):
    mox.file.set_auth(ak="somebody", sk="else")
    with pytest.raises(OSError, match="403"):
        train(s3_folder, 5, input_fn=lambda mode: pytest.fail("too late"))


def test_keys_that_may_only_read(proxy, s3_folder):
    proxy.fail("refuse", 1, lambda method, target: method == "PUT")
    with pytest.raises(mox.file.MoxFileRespException, match="log_dir: these keys may not write there: PUT: 403 Access"):
        train(s3_folder, 5, input_fn=lambda mode: pytest.fail("too late"))


def test_a_bucket_that_is_not_there(s3_folder):
    with pytest.raises(FileNotFoundError, match="log_dir: there is no such bucket.*no-such-bucket"):
        train("s3://no-such-bucket/log", 5, input_fn=lambda mode: pytest.fail("too late"))


@pytest.mark.parametrize(
    ("url", "words"), [("nosuch://host/log", "nosuch"), ("s3:/bucket/log", "two slashes"), ("s3://", "s3://bucket")]
)
def test_urls_that_nothing_serves(url, words):
    for name in ("log_dir", "checkpoint_path"):
        with pytest.raises(ValueError, match=f"{name}='{url}'.*{words}"):
            run_line(**{name: url})


def test_obs_urls(s3_folder):
    url = s3_folder.replace("s3://", "obs://")
    assert train(url, 3).checkpoint_path == url + "/model.ckpt-3"
    assert train(s3_folder, 5).global_step == 5
    assert checkpoints(url) == [0, 3, 5]


def test_other_schemes(tmp_path):
    """What fsspec has a package for: here a store in memory."""
    url = f"memory://{tmp_path.name}/log"
    train(url, 5)
    assert train(url, 8).global_step == 8
    assert checkpoints(url) == [0, 5, 8]


def test_stages_of_dead_processes_are_removed(s3_folder, temporary, tmp_path):
    code = "import os, types; from moxing.tensorflow.executor.stage import open_stage\n"
    code += "config = types.SimpleNamespace(log_dir=None, checkpoint_path={!r})\n"
    code += "with open_stage(config):\n    os._exit(9)\n"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    for url in (s3_folder, s3_folder + "-twin"):
        subprocess.run([sys.executable, "-c", code.format(url)], check=False, env=environment)
    assert len(stages(temporary)) == 2
    train(s3_folder, 2)
    (left,) = stages(temporary)
    assert (left / "owner").exists()


def test_no_thread_for_a_local_log_dir(tmp_path):
    before = set(threading.enumerate())
    threads = set()

    def seen(outputs):
        threads.update(thread.name for thread in set(threading.enumerate()) - before)

    train(tmp_path, 3, output_fn=seen, output_every_n_steps=1)
    assert not [name for name in threads if name.startswith("mox-")]


def test_what_could_not_be_uploaded_is_named_and_kept(proxy, s3_folder, temporary, lines):
    proxy.fail("500", times=float("inf"), match=lambda method, target: method != "GET" and "ckpt-6.data" in target)
    with pytest.raises(UploadError, match=rf"files of this run could not be uploaded to {s3_folder}: .*ckpt-6\.data"):
        train(s3_folder, 6, save_model_steps=3)
    assert checkpoints(s3_folder) == [0, 3]
    (kept,) = stages(temporary)
    assert (kept / "log" / "model.ckpt-6.data-00000-of-00001").exists()
    # The copy that the message names brings it there.
    proxy.fail("", times=0)
    mox.file.copy_parallel(str(kept / "log"), s3_folder)
    # However its url is written.
    assert train(s3_folder.replace("s3://tests/", "s3://tests//"), 7).global_step == 7
    # What is kept belongs to the user now.
    assert stages(temporary) == [kept]
    assert [line for line in lines() if f"could not upload all to {s3_folder} and kept it in {kept}." in line]


def test_at_the_end_a_store_that_is_away_is_waited_for(proxy, s3_folder, temporary, lines):
    FLAGS.set("upload_patience", 60)
    timer = threading.Timer(8, proxy.fail, ("", 0))

    def lose(outputs):
        if not timer.is_alive():
            proxy.fail("reset", times=float("inf"))
            timer.start()

    train(s3_folder, 1, save_model_steps=3, output_fn=lose, output_every_n_steps=1)
    assert checkpoints(s3_folder)[-1] == 1
    assert stages(temporary) == []
    said = lines()
    assert len([line for line in said if line.startswith(f"Not uploaded to {s3_folder}: ")]) <= 2
    assert f"Uploads to {s3_folder} work again." in said


def test_a_wrong_patience_is_told_at_once(s3_folder):
    FLAGS.set("upload_patience", -1)
    with pytest.raises(FlagError, match="--upload_patience=-1"):
        train(s3_folder, 1)
    assert names(s3_folder) == []


def test_a_failure_in_between_is_a_warning(proxy, s3_folder, lines):
    proxy.fail("500", times=8, match=lambda method, target: method == "PUT" and "ckpt" in target)
    train(s3_folder, 6, save_model_steps=3)
    assert any(line.startswith(f"Not uploaded to {s3_folder}: ") and "500" in line for line in lines())
    assert checkpoints(s3_folder) == [0, 3, 6]


def test_a_store_that_goes_away(proxy, s3_folder, temporary):
    def lose(outputs):
        proxy.fail("reset", times=float("inf"))

    started = time.monotonic()
    with pytest.raises(UploadError, match=r"could not be uploaded to .*model\.ckpt-9\.index"):
        train(s3_folder, 9, save_model_steps=3, output_fn=lose, output_every_n_steps=1)
    assert time.monotonic() - started < 40  # not one file after the other
    proxy.fail("", times=0)
    (kept,) = stages(temporary)
    mox.file.copy_parallel(str(kept / "log"), s3_folder)
    assert train(s3_folder, 10).global_step == 10


def test_checkpoints_of_other_trainings_are_not_fetched(proxy, s3_folder):
    for name in ("run1", "run2"):
        train(f"{s3_folder}/{name}", 2, save_summary_steps=1)
    before = len(proxy.requests)
    train(s3_folder, 2)
    assert [target for method, target in proxy.requests[before:] if method == "GET" and "ckpt" in target] == []


def test_keys_that_no_disk_can_have(s3_folder):
    mox.file.write(f"{s3_folder}/{'a' * 300}/x", "x")
    assert train(s3_folder, 2).global_step == 2
