"""Exported models: names, signatures, shapes, and that a new process computes the same with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from digits_model import FEATURES, evaluate, input_fn, model_fn, train, weights
from line_problem import line_model, run

import moxing.tensorflow as mox
from moxing.tensorflow.executor import export

SERVE = """
import json, sys
import numpy as np
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
features = tf.constant(np.array(json.load(sys.stdin), np.float32))
answers = {key: model.signatures[key](features=features)["logits"].numpy().tolist() for key in model.signatures}
print(json.dumps(answers))
"""


def with_version(version):
    def model(inputs, mode):
        spec = model_fn(inputs, mode)
        spec.export_spec.version = version
        return spec

    return model


def signature(path, key="predict_object"):
    with tf.Graph().as_default(), tf.Session() as session:
        return tf.saved_model.load(session, ["serve"], path).signature_def[key]


def shape(info):
    return [dimension.size for dimension in info.tensor_shape.dim]


@pytest.mark.slow
def test_a_new_process_computes_the_same(tmp_path):
    result = train(tmp_path, 5, export_model=mox.ExportKeys.TF_SERVING)
    outputs = []
    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        output_fn=outputs.extend,
        run_mode="PREDICT",
        batch_size=16,
        log_dir=str(tmp_path),
        max_number_of_steps=1,
    )
    answer = subprocess.run(
        [sys.executable, "-c", SERVE, result.export_path],
        input=json.dumps((FEATURES[:16] * 2 - 1).tolist()),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(answer.stdout)
    assert sorted(answers) == ["predict_object", "serving_default"]
    for logits in answers.values():
        np.testing.assert_allclose(logits, outputs[0]["logits"], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_numbers_go_up_and_strings_stay(tmp_path, caplog):
    assert train(tmp_path, 1, export_model=True).export_path == str(tmp_path / "1")
    assert train(tmp_path, 2, export_model="TF_SERVING").export_path == str(tmp_path / "2")
    (tmp_path / "99").mkdir()
    assert train(tmp_path, 3, export_model=True).export_path == str(tmp_path / "100")
    path = train(tmp_path, 4, model_fn=with_version("model"), export_model=True).export_path
    assert path == str(tmp_path / "model")
    assert f"SavedModel written to: {path}/saved_model.pb" in caplog.text
    assert not [name for name in tmp_path.iterdir() if name.name.startswith(".export")]


@pytest.mark.parametrize("version", [7, "model"])
def test_an_existing_version_is_refused_before_training(tmp_path, version):
    (tmp_path / str(version)).mkdir()
    with pytest.raises(AssertionError, match=f"Export directory already exists.*{version}.*-1"):
        train(tmp_path, 1, model_fn=with_version(version), export_model=True)
    assert not (tmp_path / "checkpoint").exists()


def test_auto_batch_leaves_the_batch_open(tmp_path):
    path = train(tmp_path, 1, export_model=True).export_path
    assert shape(signature(path).inputs["features"]) == [-1, 20]
    assert shape(signature(path).outputs["logits"]) == [-1, 3]


@pytest.mark.slow
def test_without_auto_batch_the_training_shapes_stay(tmp_path):
    def batches(mode):
        return tf.random_uniform([4, 20]), tf.zeros([4], tf.int64)

    path = train(tmp_path, 1, input_fn=batches, auto_batch=False, export_model=True).export_path
    assert shape(signature(path).inputs["features"]) == [4, 20]


def test_after_evaluation(tmp_path):
    train(tmp_path / "train", 2)
    result = evaluate(tmp_path / "train", log_dir=str(tmp_path / "eval"), export_model=True)
    assert result.export_path == str(tmp_path / "eval" / "1")


@pytest.mark.slow
def test_devices_are_cleared(tmp_path):
    def model(inputs, mode):
        with tf.device("/gpu:0"):
            return model_fn(inputs, mode)

    path = train(tmp_path, 1, model_fn=model, export_model=True).export_path
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.saved_model.load(session, ["serve"], path)
        assert {operation.device for operation in graph.get_operations()} == {""}


def test_a_finished_run_exports_without_training(tmp_path, caplog):
    train(tmp_path, 3)
    result = train(tmp_path, 3, export_model=True)
    assert result.samples == 0
    assert result.export_path == str(tmp_path / "1")
    assert "model.ckpt-3 has reached step 3 already" in caplog.text


def test_tables_are_filled_in_the_exported_model(tmp_path):
    def words(mode):
        dataset = tf.data.Dataset.from_tensor_slices((["a", "b", "a"], [0.0, 1.0, 0.0])).repeat()
        return tf.data.make_one_shot_iterator(dataset).get_next()

    def model(inputs, mode):
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64)), -1
        )
        scores = tf.gather(tf.get_variable("scores", [2]), table.lookup(inputs[0]))
        return mox.ModelSpec(
            loss=tf.reduce_mean(tf.square(scores - inputs[1])),
            export_spec=mox.ExportSpec({"words": inputs[0]}, {"scores": scores}),
        )

    path = train(tmp_path, 2, input_fn=words, model_fn=model, batch_size=2, export_model=True).export_path
    with tf.Graph().as_default(), tf.Session() as session:
        info = tf.saved_model.load(session, ["serve"], path).signature_def["predict_object"]
        scores = session.run(info.outputs["scores"].name, {info.inputs["words"].name: ["b", "a", "b"]})
    assert scores.shape == (3,)
    assert scores[0] == scores[2] != scores[1]


@pytest.mark.slow
def test_a_difference_from_evaluation_is_told(tmp_path, caplog):
    """The usual mistake: batch statistics instead of moving averages, because EXPORT was forgotten."""

    def model(inputs, mode):
        normal = tf.layers.batch_normalization(inputs[0], training=mode != mox.ModeKeys.EVAL)
        logits = tf.layers.dense(normal, 3)
        loss = tf.losses.sparse_softmax_cross_entropy(inputs[1], logits)
        return mox.ModelSpec(
            loss=loss, log_info={"loss": loss}, export_spec=mox.ExportSpec({"x": inputs[0]}, {"logits": logits})
        )

    train(tmp_path, 5, model_fn=model, export_model=True)
    assert "The exported model differs from model_fn in mode EVAL (logits: differs by up to" in caplog.text


def test_a_loaded_model_that_computes_something_else_is_not_named(tmp_path, monkeypatch):
    """Damage between writing and loading cannot be had from outside: the write is followed by a change of the file."""
    write = export._write

    def write_and_damage(session, spec, directory):
        session.run(tf.global_variables()[0].assign_add(tf.ones_like(tf.global_variables()[0])))
        write(session, spec, directory)
        session.run(tf.global_variables()[0].assign_add(-tf.ones_like(tf.global_variables()[0])))

    monkeypatch.setattr(export, "_write", write_and_damage)
    with pytest.raises(mox.executor.ExportError, match="loaded back, gives other results.*nothing was exported"):
        train(tmp_path, 2, export_model=True)
    assert not (tmp_path / "1").exists()
    assert not [name for name in tmp_path.iterdir() if name.name.startswith(".export")]
    assert (tmp_path / "model.ckpt-2.index").exists()


def test_patterns_of_a_warm_start_do_not_touch_the_export(tmp_path):
    train(tmp_path / "first", 2)
    mox.set_flag("checkpoint_exclude_patterns", "logits,global_step,Adam,_power")
    result = train(tmp_path / "second", 3, checkpoint_path=str(tmp_path / "first"), export_model=True)
    trained, exported = weights(result.checkpoint_path), weights(f"{result.export_path}/variables/variables")
    for name in ("hidden/kernel", "logits/kernel", "logits/bias"):
        np.testing.assert_array_equal(exported[name], trained[name], err_msg=name)


def test_a_placeholder_of_its_own(tmp_path, caplog):
    """As an input that no output depends on, and as one that an output depends on."""

    def model(output_of):
        def build(inputs, mode):
            spec = line_model(inputs, mode)
            own = tf.placeholder_with_default(0.0, []) if mode is mox.ModeKeys.TRAIN else tf.placeholder(tf.float32, [])
            spec.export_spec = mox.ExportSpec({"x": own}, {"y": output_of(own, spec.loss)}, version=1)
            return spec

        return build

    settings = {"export_model": True, "max_number_of_steps": 1}
    result = run(log_dir=tmp_path / "a", model_fn=model(lambda own, loss: loss * 2.0), **settings)
    assert result.export_path == str(tmp_path / "a" / "1")
    assert "on which no output depends" in caplog.text
    with pytest.raises(mox.executor.ExportError, match="depends on the placeholder.*nothing was exported"):
        run(log_dir=tmp_path / "b", model_fn=model(lambda own, loss: loss + own), **settings)
    assert not [name for name in os.listdir(tmp_path / "b") if name.startswith((".export", "1"))]


def test_a_full_disk(tmp_path, monkeypatch):
    """What a killed process left long ago is gone; nothing of this export is left."""
    old = tmp_path / ".export-99999999-1"
    old.mkdir()
    os.utime(old, (0, 0))

    def fill(session, spec, directory):
        os.makedirs(directory)
        raise tf.errors.ResourceExhaustedError(None, None, f"{directory}/x; No space left on device")

    monkeypatch.setattr(export, "_write", fill)
    with pytest.raises(OSError, match=r"The exported model could not be written, the disk is full \(.* MB free\).*-2"):
        train(tmp_path, 2, export_model=True)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".export")]


def test_needs_a_log_dir():
    with pytest.raises(ValueError, match="log_dir is needed"):
        train(None, 1, export_model=True)
