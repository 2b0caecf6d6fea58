"""What a run fetches from its log_dir and checkpoint_path."""

from __future__ import annotations

import json
import os

import pytest
import tensorflow.compat.v1 as tf
from digits_model import evaluate, model_fn, train
from line_problem import line_model
from line_problem import run as run_line
from uploaded import checkpoints, names

import moxing.tensorflow as mox


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


@pytest.mark.slow
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
    with pytest.raises(ValueError, match=f"there is no {s3_folder}/model.ckpt-1.index"):
        train(s3_folder, 2)


def test_without_its_marker_a_checkpoint_does_not_count(s3_folder, lines):
    train(s3_folder, 5)
    mox.file.remove(s3_folder + "/checkpoint")
    train(s3_folder, 7, save_model_secs=None)
    assert checkpoints(s3_folder) == [0, 7]
    assert f"Restoring parameters from {s3_folder}/model.ckpt-5" not in lines()
    assert any(line.startswith(f"{s3_folder} has files of checkpoints and no object 'checkpoint'") for line in lines())


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_checkpoints_of_other_trainings_are_not_fetched(proxy, s3_folder):
    for name in ("run1", "run2"):
        train(f"{s3_folder}/{name}", 2, save_summary_steps=1)
    before = len(proxy.requests)
    train(s3_folder, 2)
    assert [target for method, target in proxy.requests[before:] if method == "GET" and "ckpt" in target] == []
