"""The names of the classes travel with checkpoints and exports, and are compared when a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

import moxing.tensorflow as mox


def make_folder(base: Path, *labels: str) -> Path:
    for label in labels:
        (base / label).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(base / label / "0.png")
    return base


def run(base: Path, mode=mox.ModeKeys.TRAIN, **kwargs):
    meta = mox.ImageClassificationRawMetadata(str(base))

    def input_fn(mode):
        image, label = mox.ImageClassificationRawDataset(meta, image_size=4).get(["image", "label"])
        return tf.cast(image, tf.float32), label

    def model_fn(inputs, mode):
        images, labels = inputs
        logits = tf.layers.dense(tf.layers.flatten(images), 3)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        spec = mox.ExportSpec(inputs_dict={"images": images}, outputs_dict={"logits": logits}, version="model")
        return mox.ModelSpec(loss=loss, log_info={"loss": loss}, export_spec=spec)

    optimizer_fn = mox.get_optimizer_fn("sgd", learning_rate=0.1) if mode is mox.ModeKeys.TRAIN else None
    return mox.run(
        input_fn=input_fn, model_fn=model_fn, optimizer_fn=optimizer_fn, run_mode=mode, batch_size=2, **kwargs
    )


@pytest.mark.slow
def test_labels_stand_beside_the_checkpoint_and_in_the_export(tmp_path):
    base = make_folder(tmp_path / "data", "乙", "a b", "甲")
    (base / "labels.txt").write_text("0: 甲\n1: 乙\n2: a b\n")
    log = tmp_path / "log"
    run(base, log_dir=str(log), max_number_of_steps=2, export_model=mox.ExportKeys.TF_SERVING)
    for path in (log / "labels.txt", log / "model" / "assets.extra" / "labels.txt"):
        assert path.read_text(encoding="utf-8") == "0: 甲\n1: 乙\n2: a b\n"


@pytest.mark.slow
def test_going_on_with_other_classes_is_an_error_that_names_them(tmp_path):
    run(make_folder(tmp_path / "one", "a", "b", "c"), log_dir=str(tmp_path / "log"), max_number_of_steps=2)
    other = make_folder(tmp_path / "two", "a", "c", "d")
    with pytest.raises(ValueError, match="class 1 is 'c' in the data and 'b' in .*labels.txt"):
        run(other, log_dir=str(tmp_path / "log"), max_number_of_steps=4)
    assert (tmp_path / "log" / "labels.txt").read_text() == "0: a\n1: b\n2: c\n"
    # A warm start may have other classes.
    run(other, log_dir=str(tmp_path / "new"), checkpoint_path=str(tmp_path / "log"), max_number_of_steps=4)
    assert (tmp_path / "new" / "labels.txt").read_text() == "0: a\n1: c\n2: d\n"


@pytest.mark.slow
def test_evaluating_other_classes_is_warned_of(tmp_path, caplog):
    run(make_folder(tmp_path / "one", "a", "b"), log_dir=str(tmp_path / "log"), max_number_of_steps=2)
    with caplog.at_level("WARNING", logger="tensorflow"):
        path = str(tmp_path / "log")
        run(tmp_path / "one", mox.ModeKeys.EVAL, checkpoint_path=path, max_number_of_steps=1)
        assert "classes of the data" not in caplog.text
        other = make_folder(tmp_path / "two", "b", "a2")
        run(other, mox.ModeKeys.EVAL, checkpoint_path=path, max_number_of_steps=1)
    assert "class 0 is 'a2' in the data and 'a' in" in caplog.text
