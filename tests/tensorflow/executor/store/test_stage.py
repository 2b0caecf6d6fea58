"""Runs whose log_dir or checkpoint_path is a url: the same files on the store as on a local disk."""

from __future__ import annotations

import json
import os
import tempfile
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from digits_model import evaluate, model_fn, train, weights
from line_problem import run as run_line
from uploaded import checkpoints, download, names, stages

import moxing.tensorflow as mox
from helpers import warm
from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.executor import UploadError


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


@pytest.mark.slow
def test_seeded_run_equals_a_local_one(s3_folder, tmp_path):
    train(tmp_path / "local", 1)
    mox.file.copy_parallel(str(tmp_path / "local"), s3_folder)
    train(tmp_path / "local", 30)
    train(s3_folder, 17)
    train(s3_folder, 30)
    download(s3_folder, tmp_path / "copy")
    assert_same_weights(tmp_path / "local" / "model.ckpt-30", tmp_path / "copy" / "model.ckpt-30")


@pytest.mark.slow
def test_only_the_newest_are_kept_over_several_runs(s3_folder):
    mox.set_flag("keep_checkpoint_max", 2)
    train(s3_folder, 5)
    train(s3_folder, 10)
    train(s3_folder, 15)
    assert checkpoints(s3_folder) == [10, 15]
    assert {name.split(".")[1] for name in names(s3_folder) if name.startswith("model.ckpt")} == {"ckpt-10", "ckpt-15"}


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_local_run_begins_with_a_checkpoint_of_the_store(s3_folder, tmp_path, lines):
    train(s3_folder, 5)
    train(tmp_path / "log", 8, checkpoint_path=s3_folder + "/model.ckpt-5.index")
    assert any(line.startswith(f"From {s3_folder}/model.ckpt-5: ") for line in lines())
    assert os.path.exists(tmp_path / "log" / "model.ckpt-8.index")


def test_without_a_checkpoint_evaluation_says_where_it_looked(s3_folder):
    with pytest.raises(ValueError, match=f"log_dir='{s3_folder}' holds none"):
        run_line("EVAL", log_dir=s3_folder)
    assert not mox.file.exists(s3_folder)


def test_the_trace_of_a_profiler_comes_along(s3_folder):
    def profiled(inputs, mode):
        spec = model_fn(inputs, mode)
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, hooks=[mox.ProfilerHook(start_step=1, steps=2)])

    train(s3_folder, 5, model_fn=profiled)
    assert any(name.startswith("plugins/profile/") for name in names(s3_folder))
    with pytest.raises(ValueError, match="directory='s3://bucket/trace'.*None for log_dir"):
        mox.ProfilerHook(directory="s3://bucket/trace")


@pytest.mark.slow
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
    with pytest.raises(
        mox.file.MoxFileRespException, match="log_dir: no permission to write with these keys: PUT: 403 Access"
    ):
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


@pytest.mark.slow
def test_other_schemes(tmp_path):
    """What fsspec has a package for: here a store in memory."""
    url = f"memory://{tmp_path.name}/log"
    train(url, 5)
    assert train(url, 8).global_step == 8
    assert checkpoints(url) == [0, 5, 8]


def test_stages_of_dead_processes_are_removed(s3_folder, temporary, tmp_path):
    code = "import os, types; from moxing.tensorflow.executor.store.stage import RemoteStage, open_stage\n"
    code += "config = types.SimpleNamespace(log_dir=None, checkpoint_path={!r})\n"
    code += "RemoteStage.choose_checkpoint = lambda stage: os._exit(9)\n"
    code += "with open_stage(config):\n    pass\n"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    for url in (s3_folder, s3_folder + "-twin"):
        warm.run(warm.Program("code", code.format(url)), warm.Surroundings(environment=environment))
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
    assert [line for line in lines() if f"could not upload all files to {s3_folder} and kept them in {kept}." in line]


@pytest.mark.slow
def test_at_the_end_a_store_that_is_away_is_waited_for(proxy, s3_folder, temporary, lines):
    FLAGS.set("upload_patience", 60)
    timer = threading.Timer(2, proxy.fail, ("", 0))

    def lose(outputs):
        if not timer.is_alive():
            proxy.fail("reset", times=float("inf"))
            timer.start()

    train(s3_folder, 1, save_model_steps=3, output_fn=lose, output_every_n_steps=1)
    assert checkpoints(s3_folder)[-1] == 1
    assert stages(temporary) == []
    said = lines()
    assert len([line for line in said if line.startswith(f"Could not upload to {s3_folder}: ")]) <= 2
    assert f"Uploads to {s3_folder} work again." in said


def test_a_wrong_patience_is_told_at_once(s3_folder):
    FLAGS.set("upload_patience", -1)
    with pytest.raises(FlagError, match="--upload_patience=-1"):
        train(s3_folder, 1)
    assert names(s3_folder) == []


def test_a_failure_in_between_is_a_warning(proxy, s3_folder, lines):
    proxy.fail("500", times=8, match=lambda method, target: method == "PUT" and "ckpt" in target)
    train(s3_folder, 6, save_model_steps=3)
    assert any(line.startswith(f"Could not upload to {s3_folder}: ") and "500" in line for line in lines())
    assert checkpoints(s3_folder) == [0, 3, 6]


def test_a_store_that_goes_away(proxy, s3_folder, temporary):
    def lose(outputs):
        proxy.fail("reset", times=float("inf"))

    with pytest.raises(UploadError, match=r"could not be uploaded to .*model\.ckpt-9\.index"):
        train(s3_folder, 9, save_model_steps=3, output_fn=lose, output_every_n_steps=1)
    proxy.fail("", times=0)
    (kept,) = stages(temporary)
    mox.file.copy_parallel(str(kept / "log"), s3_folder)
    assert train(s3_folder, 10).global_step == 10
