"""What the manual says about data: the flowers case, strings through the model, and its pitfalls."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

import moxing.tensorflow as mox
from helpers.launcher import output_of
from moxing.tensorflow.datasets import BaseTFRecordMetadata

#: The case of the manual (1.4), put together from its pieces; a small network stands in for ResNet-50.
FLOWERS = """
import sys
import tensorflow as tf
import moxing.tensorflow as mox
from moxing.tensorflow.optimizer import learning_rate_scheduler
slim = tf.contrib.slim

tf.flags.DEFINE_string('data_url', None, 'Data directory.')
tf.flags.DEFINE_string('train_url', None, 'Log directory.')
tf.flags.DEFINE_integer('batch_size', 32, 'Samples per batch.')
flags = tf.flags.FLAGS


def main(*args):
  num_gpus = mox.get_flag('num_gpus')
  num_workers = len(mox.get_flag('worker_hosts').split(','))
  data_meta = mox.ImageClassificationRawMetadata(base_dir=flags.data_url)

  def input_fn(mode):
    augmentation_fn = mox.get_data_augmentation_fn(name='resnet_v1_50',
                                                   run_mode=mode,
                                                   output_height=64,
                                                   output_width=64,
                                                   resize_side_min=72,
                                                   resize_side_max=96)
    dataset = mox.ImageClassificationRawDataset(data_meta,
                                                batch_size=flags.batch_size,
                                                num_epochs=10,
                                                augmentation_fn=augmentation_fn)
    image, label = dataset.get(['image', 'label'])
    return image, label

  def small_net(images, mode):
    net = images / 64.0
    with slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(0.00004),
                        normalizer_fn=slim.batch_norm,
                        normalizer_params={'is_training': mode == mox.ModeKeys.TRAIN, 'decay': 0.9}):
      for depth in (16, 32, 64):
        net = slim.max_pool2d(slim.conv2d(net, depth, [3, 3]), [2, 2])
    return slim.fully_connected(tf.reduce_mean(net, [1, 2]), data_meta.num_classes, activation_fn=None)

  def model_fn(inputs, mode):
    images, labels = inputs
    logits = small_net(images, mode)
    labels_one_hot = slim.one_hot_encoding(labels, data_meta.num_classes)
    loss = tf.losses.softmax_cross_entropy(logits=logits, onehot_labels=labels_one_hot)
    regularization_losses = mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    regularization_loss = tf.add_n(regularization_losses)
    loss = loss + regularization_loss
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
    return mox.ModelSpec(loss=loss, log_info={'loss': loss, 'accuracy': accuracy})

  def optimizer_fn():
    lr = learning_rate_scheduler.piecewise_lr('5:0.05,10:0.005',
                                              num_samples=data_meta.total_num_samples,
                                              global_batch_size=flags.batch_size * num_gpus * num_workers)
    return tf.train.MomentumOptimizer(learning_rate=lr, momentum=0.9)

  mox.run(input_fn=input_fn,
          model_fn=model_fn,
          optimizer_fn=optimizer_fn,
          run_mode=mox.ModeKeys.TRAIN,
          log_dir=flags.train_url,
          max_number_of_steps=sys.maxint)


if __name__ == '__main__':
  tf.app.run(main=main)
"""


@pytest.mark.slow
@pytest.mark.realdata
def test_flowers_train_to_well_above_chance(tmp_path, real_data):
    script = tmp_path / "mox_flowers.py"
    script.write_text(FLOWERS)
    words = [f"--data_url={real_data / 'flowers'}", f"--train_url={tmp_path / 'log'}", "--num_gpus=1"]
    output = output_of(script, *words)
    accuracies = [float(text) for text in re.findall(r"accuracy: ([0-9.]+)", output)]
    # 700 photos, 10 epochs, batches of 32 that go on over the ends of epochs: the last step is number 218.
    assert "step: 218(global step: 218)" in output
    assert np.mean(accuracies[-6:]) > 0.5  # chance is 0.2
    assert (tmp_path / "log" / "labels.txt").read_text().splitlines()[0] == "0: daisy"


def make_folder(base: Path, names: dict[str, list[str]]) -> Path:
    """Class folders of small images whose red value is their number."""
    number = 0
    for label, files in names.items():
        (base / label).mkdir(parents=True)
        for name in files:
            Image.new("RGB", (20 + number, 16), (number, 10, 20)).save(base / label / name, format="PNG")
            number += 1
    return base


def predict(input_fn, model_fn, output_fn, log_dir, **kwargs):
    """Trains one step and predicts with what came out."""
    mox.run(
        input_fn=input_fn, model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.1),
        run_mode=mox.ModeKeys.TRAIN, log_dir=str(log_dir), max_number_of_steps=1, **kwargs,
    )  # fmt: skip
    mox.run(
        input_fn=input_fn, model_fn=model_fn, output_fn=output_fn, output_every_n_steps=1,
        run_mode=mox.ModeKeys.PREDICT, checkpoint_path=str(log_dir), max_number_of_steps=10, **kwargs,
    )  # fmt: skip


def test_file_names_reach_output_fn_though_they_differ_in_length(tmp_path):
    """§4.7; `ord(b)` of its helper is for Python 2's strings, Python 3's bytes are numbers already."""
    names = ["1.png", "a much longer name.png", "中文 🌼.png"]
    meta = mox.ImageClassificationRawMetadata(base_dir=str(make_folder(tmp_path / "data", {"flower": names})))
    seen = {}

    def bytes_to_sequence(bts):
        return np.array(list(bts), np.int64)

    def sequence_to_bytes(seq):
        return bytes(int(i) for i in seq if i > 0)

    def input_fn(mode):
        dataset = mox.ImageClassificationRawDataset(meta, num_epochs=1)
        image, label, image_name = dataset.get(["image", "label", "image_name"])
        image = tf.image.resize_images(tf.cast(image, tf.float32), [4, 4])
        image_name_seq = tf.py_func(bytes_to_sequence, inp=[image_name], Tout=tf.int64)
        image_name_seq.set_shape([None])
        return image, label, image_name_seq

    def model_fn(inputs, mode):
        images, labels, image_name_seqs = inputs
        logits = tf.layers.dense(tf.layers.flatten(images), 2)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return mox.ModelSpec(loss=loss, output_info={"image_name_seqs": image_name_seqs, "logits": logits})

    def output_fn(outputs):
        for seq, prediction in zip(outputs[0]["image_name_seqs"], outputs[0]["logits"], strict=True):
            seen[sequence_to_bytes(seq).decode()] = prediction

    predict(input_fn, model_fn, output_fn, tmp_path / "log", batch_size=2)
    assert sorted(seen) == sorted(names)
    assert all(prediction.shape == (2,) for prediction in seen.values())


def test_class_order_does_not_depend_on_the_file_system(tmp_path):
    """Pitfall 3-1-1: sorted by name without labels.txt, and the order is written where serving finds it."""
    labels = ["label_2", "label_10", "label_1"]
    base = make_folder(tmp_path / "data", {label: [f"{label}.png"] for label in labels})
    meta = mox.ImageClassificationRawMetadata(base_dir=str(base))
    assert meta.labels_list == ["label_1", "label_10", "label_2"]
    (base / "labels.txt").write_text("0: label_2\n1: label_1\n2: label_10\n")
    assert mox.ImageClassificationRawMetadata(base_dir=str(base)).labels_list == ["label_2", "label_1", "label_10"]


def test_given_num_samples_saves_the_wait(tmp_path, caplog):
    """Pitfall 3-4-1: nothing is scanned when the number is given, and what was scanned once is not scanned again."""
    with tf.python_io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for _ in range(3):
            writer.write(b"record")
    scans = "Automatically extracting num_samples from tfrecord"
    with caplog.at_level("INFO", logger="tensorflow"):
        assert BaseTFRecordMetadata(str(tmp_path), "*.tfrecord", num_samples=1000).num_samples == 1000
        assert scans not in caplog.text
        assert BaseTFRecordMetadata(str(tmp_path), "*.tfrecord").num_samples == 3
        assert scans in caplog.text
        caplog.clear()
        assert BaseTFRecordMetadata(str(tmp_path), "*.tfrecord").num_samples == 3
        assert scans not in caplog.text


def test_augmentation_of_a_decoded_image_does_not_distort_it(tmp_path):
    """Pitfall 3-4-2: bilinear resizing of an image that was just decoded (uint8)."""
    gradient = np.tile(np.arange(0, 250, 5, dtype=np.uint8)[:, None, None], (1, 40, 3))
    (tmp_path / "data" / "a").mkdir(parents=True)
    Image.fromarray(gradient).save(tmp_path / "data" / "a" / "0.png")
    meta = mox.ImageClassificationRawMetadata(base_dir=str(tmp_path / "data"))
    with tf.Graph().as_default(), tf.Session() as session:
        image = mox.ImageClassificationRawDataset(meta).get(["image"])[0]
        resized = session.run(tf.image.resize_images(image, [25, 20]))
        augment = mox.get_data_augmentation_fn("inception_v1", mox.ModeKeys.EVAL, 25, 20, central_fraction=1.0)
        augmented = session.run(augment(image))
    np.testing.assert_allclose(resized[:, 0, 0], np.arange(0, 250, 10), atol=0.5)
    np.testing.assert_allclose((augmented[:, 0, 0] + 1) * 127.5, np.arange(0, 250, 10), atol=0.5)
