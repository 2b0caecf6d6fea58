"""What tf.contrib has, under which names, and what it says about the rest."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from helpers.launcher import output_of
from moxing.tf1 import contrib, environment
from moxing.tf1.contrib import _tables

environment.prepare()

TABLES = [
    *("crf", "data", "framework", "image", "layers", "legacy_seq2seq", "lookup", "losses", "metrics", "opt", "rnn"),
    *("seq2seq", "training", "util"),
]


@pytest.mark.parametrize("part", TABLES)
def test_every_listed_name_is_there(part: str) -> None:
    module = getattr(contrib, part)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    assert set(module.__all__) <= set(dir(module))


def test_parts_that_are_tables_serve_their_names_and_refuse_the_rest() -> None:
    missing = []
    for part, table in _tables.PARTS.items():
        module = load(f"tensorflow.contrib.{part}")
        assert module is getattr(contrib, part) is load(f"tensorflow.contrib.{part}.python.ops")
        missing += [f"{part}.{name}" for name in module.__all__ if getattr(module, name, None) is None]
        with pytest.raises(NotImplementedError) as error:
            module.no_such_function(1)
        assert str(error.value) == f"tf.contrib.{part}.no_such_function is not available: {table.instead}."
    assert missing == []
    assert load("tensorflow.contrib.tensorboard.plugins").projector.ProjectorConfig
    assert load("tensorflow.contrib.framework.python.ops.audio_ops").mfcc


def test_the_names_of_slim() -> None:
    names = (
        "conv2d fully_connected arg_scope flatten one_hot_encoding batch_norm dropout losses learning "
        "evaluation metrics dataset dataset_data_provider tfexample_decoder parallel_reader prefetch_queue "
        "queues nets data_decoder data_provider get_model_variables get_variables_to_restore "
        "assign_from_checkpoint_fn model_analyzer summaries l2_regularizer xavier_initializer "
        "variance_scaling_initializer repeat stack separable_conv2d add_arg_scope"
    )
    assert [name for name in names.split() if not hasattr(contrib.slim, name)] == []
    assert {"conv2d", "nets"} < set(dir(contrib.slim))


def test_importing_contrib_and_its_parts_loads_no_tensorflow() -> None:
    program = (
        "import sys\n"
        "from moxing.tf1 import contrib\n"
        "from moxing.tf1.contrib import crf, data, framework, image, layers, legacy_seq2seq, losses\n"
        "from moxing.tf1.contrib import metrics, opt, rnn, seq2seq, slim, tpu, training\n"
        "training.HParams(a=1)\n"
        "loaded = {'tensorflow', 'tf_slim', 'tf_keras'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def load(old_name: str) -> ModuleType:
    """What the launcher imports for `tensorflow.contrib...`."""
    return importlib.import_module(old_name.replace("tensorflow.contrib", contrib.__name__, 1))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("tensorflow.contrib.slim", "conv2d"),
        ("tensorflow.contrib.slim.nets", "resnet_v1"),
        ("tensorflow.contrib.slim.nets.vgg", "vgg_16"),
        ("tensorflow.contrib.slim.python.slim", "nets"),
        ("tensorflow.contrib.slim.python.slim.nets", "inception"),
        ("tensorflow.contrib.slim.python.slim.nets.resnet_v1", "resnet_v1_50"),
        ("tensorflow.contrib.slim.python.slim.learning", "train"),
        ("tensorflow.contrib.slim.python.slim.data", "tfexample_decoder"),
        ("tensorflow.contrib.slim.python.slim.data.dataset", "Dataset"),
        ("tensorflow.contrib.layers", "xavier_initializer"),
        ("tensorflow.contrib.layers.python.layers", "utils"),
        ("tensorflow.contrib.layers.python.layers.utils", "collect_named_outputs"),
        ("tensorflow.contrib.framework.python.ops", "arg_scope"),
        ("tensorflow.contrib.framework.python.ops.variables", "get_variables"),
        ("tensorflow.contrib.framework.python.framework", "load_variable"),
        ("tensorflow.contrib.training.python.training", "HParams"),
        ("tensorflow.contrib.training.python.training.hparam", "HParams"),
        ("tensorflow.contrib.data.python.ops", "map_and_batch"),
        ("tensorflow.contrib.rnn.python.ops.core_rnn_cell", "_linear"),
        ("tensorflow.contrib.rnn.python.ops.rnn_cell", "LayerNormBasicLSTMCell"),
        ("tensorflow.contrib.crf.python.ops.crf", "crf_decode"),
        ("tensorflow.contrib.legacy_seq2seq.python.ops.seq2seq", "_extract_argmax_and_embed"),
        ("tensorflow.contrib.seq2seq.python.ops.attention_wrapper", "_bahdanau_score"),
        ("tensorflow.contrib.seq2seq.python.ops.helper", "TrainingHelper"),
        ("tensorflow.contrib.seq2seq.python.ops.decoder", "_transpose_batch_time"),
        ("tensorflow.contrib.opt.python.training.lazy_adam_optimizer", "LazyAdamOptimizer"),
        ("tensorflow.contrib.keras", "layers"),
        ("tensorflow.contrib.keras.api.keras.layers", "LSTM"),
    ],
)
def test_modules_are_found_under_their_old_names(module: str, name: str) -> None:
    assert hasattr(load(module), name)


def test_modules_of_a_folder_that_is_one_module_today() -> None:
    names: dict[str, Any] = {}
    exec("from moxing.tf1.contrib.seq2seq.python.ops import attention_wrapper, helper", names)
    exec("from moxing.tf1.contrib.rnn.python.ops import rnn_cell as cells", names)
    assert names["attention_wrapper"] is names["helper"] is contrib.seq2seq
    assert names["cells"] is contrib.rnn


def test_a_module_under_an_old_name_is_the_module_itself() -> None:
    nets = load("tensorflow.contrib.slim.nets")
    assert nets is contrib.slim.nets is sys.modules["tf_slim.nets"]
    assert nets.__spec__.name == "tf_slim.nets"
    # Not a second copy of the file, which Python would load from the directory of the package.
    assert load("tensorflow.contrib.slim.nets.vgg") is nets.vgg is sys.modules["tf_slim.nets.vgg"]
    assert nets.vgg.__name__ == "tf_slim.nets.vgg"


@pytest.mark.parametrize(
    ("find", "messages"),
    [
        (
            lambda: contrib.hparams,
            ["tf.contrib.hparams", "tf.contrib.training.HParams", "has: all_reduce, autograph"],
        ),
        (lambda: contrib.slimm, ["did you mean slim?", "timeseries, tpu, training"]),
        (lambda: contrib.slim.conv2, ["tf.contrib.slim.conv2", "did you mean conv2d"]),
        (lambda: contrib.rnn.LSTMBlokCell, ["tf.contrib.rnn.LSTMBlokCell", "did you mean LSTMBlockCell"]),
        (lambda: contrib.data.prefetch_to_device, ["prefetches by itself", "tf.contrib.data has: AUTOTUNE"]),
        (lambda: contrib.image.dense_image_warp, ["tf.contrib.image has: angles_to_projective_transforms"]),
        (lambda: contrib.training.stratified_sample, ["tf.contrib.training has: HParams"]),
    ],
)
def test_what_is_missing_is_named_with_what_there_is(find: Any, messages: list[str]) -> None:
    with pytest.raises(AttributeError) as error:
        find()
    assert [text for text in messages if text not in str(error.value)] == []


@pytest.mark.parametrize(
    ("module", "messages"),
    [
        (
            "tensorflow.contrib.hparams",
            ["No module named 'tensorflow.contrib.hparams'", "training.HParams", "has: all_reduce, autograph"],
        ),
        ("tensorflow.contrib.learn.python.learn.x", ["tensorflow.contrib.learn", "tf.estimator"]),
        ("tensorflow.contrib.slim.nets.resnet_v9", ["tensorflow.contrib.slim.nets.resnet_v9"]),
        ("tensorflow.contrib.nothing_like_it", ["tf.contrib has: all_reduce, autograph"]),
    ],
)
def test_a_missing_module_says_the_same(module: str, messages: list[str]) -> None:
    with pytest.raises(ModuleNotFoundError) as error:
        load(module)
    assert [text for text in messages if text not in str(error.value)] == []


def test_a_module_of_the_estimator_may_be_the_first_import(tmp_path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from tensorflow.contrib.tpu.python.tpu import tpu_config\n"
        "import tensorflow as tf\n"
        "print(tpu_config.TPUConfig is tf.contrib.tpu.TPUConfig, tf.estimator.ModeKeys.TRAIN)\n"
    )
    assert output_of(script).splitlines()[-1] == "True train"
