"""slim as scripts of 2018 use it, built and run on today's TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1
slim = contrib.slim

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.tf\.layers\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.layer\.:UserWarning"),
]


@pytest.fixture(params=["v1 shapes", "v2 shapes"])
def graph(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "v1 shapes":
        v1.disable_v2_tensorshape()
    try:
        with tf.Graph().as_default() as graph:
            yield graph
    finally:
        v1.enable_v2_tensorshape()


def network(images: Any, is_training: bool = True) -> Any:
    with slim.arg_scope(
        [slim.conv2d],
        weights_regularizer=slim.l2_regularizer(0.01),
        normalizer_fn=slim.batch_norm,
        normalizer_params={"is_training": is_training, "decay": 0.5},
    ):
        net = slim.conv2d(images, 4, [3, 3], scope="first")
        net = slim.max_pool2d(net, [2, 2])
        net = slim.repeat(net, 2, slim.conv2d, 4, [3, 3], scope="more")
    net = slim.dropout(slim.flatten(net), 0.5, is_training=is_training)
    return slim.fully_connected(net, 3, activation_fn=None, scope="logits")


def train_op(logits: Any, labels: Any, **kwargs: Any) -> Any:
    v1.losses.softmax_cross_entropy(slim.one_hot_encoding(labels, 3), logits)
    return slim.learning.create_train_op(
        v1.losses.get_total_loss(), v1.train.GradientDescentOptimizer(0.1), summarize_gradients=True, **kwargs
    )


def test_a_network_trains_and_its_averages_move(graph: Any) -> None:
    logits = network(v1.random_normal([4, 8, 8, 3], mean=3.0))
    step = train_op(logits, tf.constant([0, 1, 2, 0]), clip_gradient_norm=4.0)
    assert len(v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)) == 3
    assert len(v1.get_collection(v1.GraphKeys.UPDATE_OPS)) == 6
    names = [variable.op.name for variable in slim.get_model_variables()]
    assert names[:3] == ["first/weights", "first/BatchNorm/beta", "first/BatchNorm/moving_mean"]
    assert names[-2:] == ["logits/weights", "logits/biases"]
    (average,) = slim.get_variables_by_name("moving_mean", scope="first/BatchNorm")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert np.isfinite(session.run(step))
        assert np.abs(session.run(average)).max() > 0
        assert session.run(v1.train.get_global_step()) == 1


def test_weights_come_back_from_a_checkpoint(graph: Any, tmp_path: Path) -> None:
    network(tf.zeros([1, 8, 8, 3]))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, str(tmp_path / "model"))
        saved = session.run(slim.get_model_variables())

    with tf.Graph().as_default():
        network(tf.zeros([1, 8, 8, 3]), is_training=False)
        slim.model_variable("new", shape=[2], initializer=tf.zeros_initializer())
        chosen = slim.get_variables_to_restore(exclude=["logits"])
        assert "logits/weights" not in [variable.op.name for variable in chosen]
        restore = slim.assign_from_checkpoint_fn(path, chosen, ignore_missing_vars=True)
        assign_op, feeds = slim.assign_from_checkpoint(path, slim.get_variables("logits"))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            restore(session)
            session.run(assign_op, feeds)
            for before, after in zip(saved, session.run(slim.get_model_variables()), strict=False):
                np.testing.assert_array_equal(before, after)


@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter:UserWarning")
def test_learning_train_and_evaluate_once(graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its supervisor works in threads, which start as a v1 script's do: without eager execution.
    monkeypatch.setattr(context, "default_execution_mode", context.GRAPH_MODE)
    labels = tf.constant([0, 1, 2, 0])
    step = train_op(network(v1.random_normal([4, 8, 8, 3])), labels)
    slim.learning.train(step, str(tmp_path), number_of_steps=3, log_every_n_steps=1)
    with tf.Graph().as_default():
        labels = tf.constant([0, 1, 2, 0], tf.int64)
        predictions = tf.argmax(network(v1.random_normal([4, 8, 8, 3]), is_training=False), 1)
        values, updates = slim.metrics.aggregate_metric_map(
            {"accuracy": slim.metrics.streaming_accuracy(predictions, labels)}
        )
        slim.get_or_create_global_step()
        (accuracy,) = slim.evaluation.evaluate_once(
            "",
            tf.train.latest_checkpoint(str(tmp_path)),
            str(tmp_path / "eval"),
            num_evals=2,
            eval_op=list(updates.values()),
            final_op=list(values.values()),
        )
    assert 0.0 <= accuracy <= 1.0


def example(**features: Any) -> bytes:
    def feature(value: Any) -> Any:
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    listed = {name.replace("__", "/"): feature(value) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=listed)).SerializeToString()


def decoder() -> Any:
    keys = {
        "image/encoded": v1.FixedLenFeature((), tf.string, ""),
        "image/format": v1.FixedLenFeature((), tf.string, "jpeg"),
        "image/class/label": v1.FixedLenFeature([], tf.int64, 0),
    }
    items = {
        "image": slim.tfexample_decoder.Image(image_key="image/encoded", format_key="image/format"),
        "label": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
    }
    return slim.tfexample_decoder.TFExampleDecoder(keys, items)


@pytest.mark.parametrize("image_format", [b"png", b"jpeg", b"JPG"])
def test_the_example_decoder_reads_images(graph: Any, image_format: bytes) -> None:
    encode = tf.io.encode_png if image_format == b"png" else tf.io.encode_jpeg
    with v1.Session() as session:
        encoded = session.run(encode(np.full([6, 5, 3], 7, np.uint8)))
        serialized = example(image__encoded=encoded, image__format=image_format, image__class__label=4)
        image, label = session.run(decoder().decode(tf.constant(serialized), ["image", "label"]))
    assert image.shape == (6, 5, 3)
    assert image.max() == 7
    assert label == 4


def test_a_dataset_provider_reads_records_through_queues(graph: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "data.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for label in range(20):
            writer.write(example(image__class__label=label))
    dataset = slim.dataset.Dataset(path, v1.TFRecordReader, decoder(), 20, {"image": "", "label": ""})
    provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=1)
    (label,) = provider.get(["label"])
    batch = slim.prefetch_queue.prefetch_queue([v1.train.batch([label], 5)]).dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        with slim.queues.QueueRunners(session):
            found = np.concatenate([session.run(batch) for _ in range(4)])
    assert found.tolist() == list(range(20))


def test_optimize_loss_and_regularizers(graph: Any) -> None:
    layers = contrib.layers
    hidden = layers.fully_connected(v1.random_normal([4, 3]), 2, weights_regularizer=layers.l1_regularizer(0.1))
    penalty = layers.apply_regularization(layers.l2_regularizer(0.5), v1.trainable_variables())
    layers.summarize_tensors([hidden])
    step = layers.optimize_loss(
        tf.reduce_sum(tf.square(hidden)) + penalty,
        contrib.framework.get_or_create_global_step(),
        learning_rate=0.1,
        optimizer="SGD",
        clip_gradients=1.0,
        summaries=["loss", "gradients"],
    )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert np.isfinite(session.run(step))


def test_normalizations_with_a_tensor_for_is_training(graph: Any) -> None:
    images = v1.random_normal([2, 4, 4, 4])
    outputs = [
        slim.batch_norm(images, is_training=v1.placeholder_with_default(True, [])),
        slim.batch_norm(images, is_training=True, updates_collections=None, fused=False),
        slim.layer_norm(images),
        slim.instance_norm(images),
        slim.group_norm(images, 2),
        slim.conv2d_transpose(images, 3, 3, 2),
        slim.separable_conv2d(images, 3, 3, 1),
    ]
    updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
    assert len(updates) == len({id(update) for update in updates}) == 2
    local = slim.local_variable(tf.zeros([2]))
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        assert [value.shape for value in session.run(outputs)][:5] == [(2, 4, 4, 4)] * 5
        assert session.run(local).tolist() == [0.0, 0.0]


def test_framework_reads_checkpoints(graph: Any, tmp_path: Path) -> None:
    framework = contrib.framework
    v1.get_variable("weights", initializer=[1.0, 2.0])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, str(tmp_path / "model"))
    assert framework.list_variables(path) == [("weights", [2])]
    assert framework.load_variable(path, "weights").tolist() == [1.0, 2.0]


def test_a_net_of_slim_runs(graph: Any) -> None:
    resnet_v1 = slim.nets.resnet_v1
    with slim.arg_scope(slim.nets.resnet_utils.resnet_arg_scope()):
        blocks = [resnet_v1.resnet_v1_block("block1", base_depth=4, num_units=2, stride=2)]
        logits, end_points = resnet_v1.resnet_v1(tf.zeros([1, 32, 32, 3]), blocks, num_classes=7, is_training=True)
    assert "predictions" in end_points
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(v1.get_collection(v1.GraphKeys.UPDATE_OPS))
        assert session.run(logits).shape == (1, 1, 1, 7)
