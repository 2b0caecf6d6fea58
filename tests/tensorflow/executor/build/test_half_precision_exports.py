"""What becomes of half precision in an export."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_slim as slim
from half_precision_runs import cross_entropy, has_half, images_and_labels, product_types

import moxing.tensorflow as mox
from moxing.tensorflow.nets.parts import precision


@pytest.fixture(autouse=True)
def first_warning():
    """Every test is told once what is told once in a process."""
    precision._warn_once.cache_clear()
    yield
    precision._warn_once.cache_clear()


def advanced(name, size, num_classes=4, half_input=False):
    """The model_fn of the manual's section 1.5, for any network; there a server takes images in half precision."""

    def model_fn(inputs, mode, **kwargs):
        images, labels = inputs
        images = tf.image.resize_images(images, [size, size])
        mox_model_fn = mox.get_model_fn(name=name, run_mode=mode, num_classes=num_classes, weight_decay=0.00004,
                                        data_format="NCHW", batch_norm_fused=True)  # fmt: skip
        images = tf.cast(images, tf.float16)
        with mox.var_scope(force_dtype=tf.float32):
            logits, _ = mox_model_fn(images)
        labels_one_hot = slim.one_hot_encoding(labels, num_classes)
        loss = tf.losses.softmax_cross_entropy(labels_one_hot, logits=logits)
        regularization_losses = mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        regularization_loss = tf.add_n(regularization_losses)
        loss = loss + regularization_loss
        logits_fp32 = tf.cast(logits, tf.float32)
        accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits_fp32, labels, 1), tf.float32))
        given = images if half_input else inputs[0]
        export_spec = mox.ExportSpec(inputs_dict={"images": given}, outputs_dict={"logits": logits_fp32})
        return mox.ModelSpec(
            loss=loss,
            log_info={"loss": loss, "accuracy": accuracy},
            output_info={"images": inputs[0], "logits": logits_fp32},
            export_spec=export_spec,
        )

    return model_fn


# --- the export -------------------------------------------------------------------------------------------------------

SERVE = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf

found = {}
for directory in sys.argv[2:]:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], directory)
        signature = meta.signature_def["predict_object"]
        (given,), (wanted,) = signature.inputs.values(), signature.outputs.values()
        logits = session.run(wanted.name, {given.name: np.load(sys.argv[1])})
        graph_def = graph.as_graph_def()
        nodes = [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]
        found[directory] = {
            "logits": logits.tolist(),
            "formats": sorted({node.attr["data_format"].s.decode() for node in nodes if node.op == "Conv2D"}),
            "products": sorted({node.attr["T"].type for node in nodes if node.op in ("Conv2D", "MatMul")}),
            "types": [given.dtype, wanted.dtype],
        }
print(json.dumps(found))
"""


def served(directories, images, tmp_path):
    """Logits of exported models in another process, on a TensorFlow without oneDNN, and what they are made of."""
    np.save(tmp_path / "images.npy", images)
    done = subprocess.run(
        [sys.executable, "-c", SERVE, str(tmp_path / "images.npy"), *directories],
        env={"TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return [found[directory] for directory in directories]


def loaded(directory, images):
    """Logits of an exported model in this process, and its graph."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], directory)
        signature = meta.signature_def["predict_object"]
        feed = {signature.inputs["images"].name: images}
        return session.run(signature.outputs["logits"].name, feed), graph


def train_and_export(model_fn, log_dir, steps=3):
    return mox.run(
        input_fn=images_and_labels,
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("momentum", 0.01),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=12,
        log_dir=str(log_dir),
        max_number_of_steps=steps,
        export_model=mox.ExportKeys.TF_SERVING,
    )


def predicted(model_fn, checkpoint):
    """The images and logits of a run in mode PREDICT, which `model_fn` builds as it does EVAL."""
    outputs = []
    mox.run(
        input_fn=images_and_labels,
        model_fn=model_fn,
        output_fn=outputs.extend,
        run_mode=mox.ModeKeys.PREDICT,
        batch_size=12,
        checkpoint_path=checkpoint,
        max_number_of_steps=2,
    )
    return (np.concatenate([output[name] for output in outputs]) for name in ("images", "logits"))


@pytest.mark.slow
def test_networks_trained_in_half_precision_and_nchw_serve_on_a_cpu(tmp_path, caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    mox.set_flag("loss_scale", "dynamic")
    exports, expected = [], []
    for name, size, exact in (("cifarnet", 16, False), ("lenet", 12, True), ("mobilenet_v1_025", 32, True)):
        mox.set_flag("exact_fp16", exact)
        model_fn = advanced(name, size)
        result = train_and_export(model_fn, tmp_path / name)
        images, logits = predicted(model_fn, result.checkpoint_path)
        exports.append(result.export_path)
        expected.append(logits)
    for found, logits in zip(served(exports, images, tmp_path), expected, strict=True):
        assert found["formats"] == ["NHWC"]
        assert found["products"] == [tf.float32.as_datatype_enum]
        assert found["types"] == [tf.float32.as_datatype_enum] * 2
        np.testing.assert_allclose(found["logits"], logits, rtol=0.02, atol=0.02 * np.abs(logits).max())
    warnings = [record.getMessage() for record in caplog.records]
    assert not [line for line in warnings if "differs" in line or "not compared" in line]


@pytest.mark.slow
def test_an_export_of_use_fp16_has_no_half_precision(tmp_path):
    mox.set_flag("use_fp16", True)
    mox.set_flag("exact_fp16", True)
    built = {}

    def model_fn(inputs, mode):
        images, labels = inputs
        x = tf.layers.conv2d(images, 8, 3, activation=tf.nn.relu)
        x = tf.layers.batch_normalization(x, training=mode == mox.ModeKeys.TRAIN)
        logits = tf.layers.dense(tf.layers.flatten(x), 4)
        built[str(mode)] = product_types()
        return mox.ModelSpec(
            loss=cross_entropy(logits, labels),
            log_info={"size": tf.norm(logits)},
            output_info={"images": images, "logits": logits},
            export_spec=mox.ExportSpec(inputs_dict={"images": images}, outputs_dict={"logits": logits}),
        )

    result = train_and_export(model_fn, tmp_path, 3)
    images, logits = predicted(model_fn, result.checkpoint_path)
    assert built == {"TRAIN": {tf.float16}, "EVAL": {tf.float16}, "PREDICT": {tf.float16}, "EXPORT": {tf.float32}}
    values, graph = loaded(result.export_path, images)
    assert not has_half(graph)
    np.testing.assert_allclose(values, logits, rtol=0.02, atol=0.02)


def test_an_export_of_variables_in_half_precision(tmp_path):
    """The variables are what they are; the products are float32."""
    mox.set_flag("var_dtype", "fp16")

    def model_fn(inputs, mode):
        images, labels = inputs
        logits = tf.layers.dense(tf.layers.flatten(images), 4)
        return mox.ModelSpec(
            loss=cross_entropy(logits, labels),
            output_info={"images": images, "logits": logits},
            export_spec=mox.ExportSpec(inputs_dict={"images": images}, outputs_dict={"logits": logits}),
        )

    result = train_and_export(model_fn, tmp_path, 3)
    images, logits = predicted(model_fn, result.checkpoint_path)
    values, graph = loaded(result.export_path, images)
    assert has_half(graph)
    assert product_types(graph) == {tf.float32}
    np.testing.assert_allclose(values, logits, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_outputs_in_half_precision_are_compared(dtype, tmp_path, caplog):
    caplog.set_level("WARNING", logger="tensorflow")

    def model_fn(inputs, mode):
        images, labels = inputs
        logits = tf.layers.dense(tf.layers.flatten(images), 4)
        given_out = tf.cast(logits, dtype) if mode != mox.ModeKeys.EXPORT else logits
        return mox.ModelSpec(
            loss=cross_entropy(logits, labels),
            log_info={"size": tf.norm(logits)},
            export_spec=mox.ExportSpec(inputs_dict={"images": images}, outputs_dict={"logits": given_out}),
        )

    result = train_and_export(model_fn, tmp_path, 1)
    assert result.export_path
    assert not [record.getMessage() for record in caplog.records]


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True])
def test_mixed_precision_of_section_1_5(exact, tmp_path, caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    mox.set_flag("exact_fp16", exact)
    mox.set_flag("loss_scale", 1024.0)
    with tf.Graph().as_default():
        tf.set_random_seed(0)
        result = train_and_export(advanced("resnet_v1_20", 16, half_input=True), tmp_path, 12)
    assert len(caplog.records) == (0 if exact else 1)
    assert result.log_info["loss"] < 1.3
    types = tf.train.NewCheckpointReader(result.checkpoint_path).get_variable_to_dtype_map()
    assert {dtype for name, dtype in types.items() if name != "global_step"} == {tf.float32}
    values, graph = loaded(result.export_path, np.zeros([12, 16, 16, 3], np.float16))
    assert values.dtype == np.float32
    assert product_types(graph) == {tf.float32}
