"""Stages of growing images: sizes, switches, going on in the middle of a stage."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

import moxing.tensorflow as mox
from moxing.tensorflow.datasets import dataset_utils
from moxing.tensorflow.datasets.tfrecord_image import ProgressiveImagenetDataset


@pytest.fixture
def files(tmp_path):
    """Two directories of records; the grey value and the label of an image are its number, labels from 1."""
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
        with tf.python_io.TFRecordWriter(str(tmp_path / name / "train-00000-of-00001")) as writer:
            for number in range(10):
                stream = io.BytesIO()
                Image.new("RGB", (40, 30), (number * 20,) * 3).save(stream, format="PNG")
                example = dataset_utils.image_to_tfexample(stream.getvalue(), b"png", 30, 40, number + 1)
                writer.write(example.SerializeToString())
    return tmp_path


def stages(files):
    return [(str(files / "small" / "train-*"), 4, 16, 0.08), (str(files / "large" / "train-*"), 2, 24, 0.5)]


@pytest.mark.slow
def test_sizes_switch_at_their_step_and_labels_are_shifted(files):
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = ProgressiveImagenetDataset(10, stages(files), [3], labels_offset=1, private_num_threads=2)
        batch = dataset.get(["image", "label"])
        shapes = []
        for _ in range(6):
            images, labels = session.run(batch)
            shapes.append(images.shape)
            assert images.dtype == np.uint8
            np.testing.assert_array_equal(images[:, 0, 0, 0], labels * 20)
    assert shapes == [(4, 16, 16, 3)] * 3 + [(2, 24, 24, 3)] * 3


@pytest.mark.slow
def test_resume_inside_and_across_stages(files):
    def run(log_dir, steps, seen):
        def input_fn(mode):
            return ProgressiveImagenetDataset(10, stages(files), [5], labels_offset=1).get(["image", "label"])

        def model_fn(inputs, mode):
            images, labels = inputs
            weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
            return mox.ModelSpec(
                loss=weight * tf.reduce_mean(tf.cast(images, tf.float32)), output_info={"labels": labels}
            )

        mox.run(
            input_fn=input_fn, model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.1),
            output_fn=lambda outputs: seen.extend(tuple(output["labels"]) for output in outputs),
            output_every_n_steps=1, run_mode=mox.ModeKeys.TRAIN, log_dir=str(log_dir), max_number_of_steps=steps,
        )  # fmt: skip

    first, whole, parts = [], [], []
    run(files / "whole", 1, first)
    (files / "parts").mkdir()
    for path in (files / "whole").iterdir():
        (files / "parts" / path.name).write_bytes(path.read_bytes())
    run(files / "whole", 9, whole)
    for steps in (3, 7, 9):
        run(files / "parts", steps, parts)
    assert parts == whole
    assert [len(labels) for labels in [*first, *whole]] == [4] * 5 + [2] * 4


@pytest.mark.parametrize("steps", [[], [3, 4], [0]])
def test_switch_steps_that_do_not_fit(files, steps):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"ds_switch_steps=.*expected 1 increasing steps"):
        ProgressiveImagenetDataset(10, stages(files), steps)


def test_bad_stage(files):
    bad = [(str(files / "small" / "train-*"), 4, 16, 1.5)]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="min_crop_area=1.5"):
        ProgressiveImagenetDataset(10, bad, [])
