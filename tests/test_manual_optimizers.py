"""The optimizers of the manual's section 5, as they stand there, around a network on real photos."""

from __future__ import annotations

import re
import shutil
import textwrap
from pathlib import Path

import pytest

from helpers.launcher import warm_moxing

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(600)]

#: What the manual leaves out: data, model, `mox.run(...)` around the optimizer. The images are small.
PROGRAM = """
import sys

import tensorflow as tf
import moxing.tensorflow as mox

metadata = mox.ImageClassificationRawMetadata(base_dir={folder!r})
lr = 0.01


def config_lr(*args):
  return 0.01


def input_fn(mode, **kwargs):
  augmentation_fn = mox.get_data_augmentation_fn(
    name='resnet_v1_18', run_mode=mode, output_height=32, output_width=32)
  dataset = mox.ImageClassificationRawDataset(metadata, num_epochs=None, shuffle=True,
                                              augmentation_fn=augmentation_fn)
  image, label = dataset.get(['image', 'label'])
  return image, label


def model_fn(inputs, mode, **kwargs):
  images, labels = inputs
  mox_model_fn = mox.get_model_fn(name='resnet_v1_18', run_mode=mode, num_classes=3)
  logits, _ = mox_model_fn(images)
  loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
  return mox.ModelSpec(loss=loss, log_info={{'loss': loss}})


def run(optimizer_fn, steps=8):
  mox.run(input_fn=input_fn,
          model_fn=model_fn,
          optimizer_fn=optimizer_fn,
          run_mode=mox.ModeKeys.TRAIN,
          batch_size=4,
          log_dir={log_dir!r},
          log_every_n_steps=1,
          max_number_of_steps=steps)
  print('TRAINED')


"""

BASIC = """
run(mox.get_optimizer_fn('momentum', learning_rate=0.01, momentum=0.9), 2)
run(lambda: tf.train.MomentumOptimizer(learning_rate=0.01, momentum=0.9), 4)

class my_optimizer(tf.train.MomentumOptimizer):
  def __init__(self):
    super(my_optimizer, self).__init__(0.01, 0.9)

def optimizer_fn():
  return my_optimizer()

run(optimizer_fn, 6)
"""

BATCH_GRADIENTS = """
def optimizer_fn():
  opt = mox.get_optimizer_fn('momentum', learning_rate=lr, momentum=0.9)()
  opt = mox.get_optimizer_wrapper_fn('batch_gradients', opt, num_batches=8, sync_on_apply=True)()
  return opt

run(optimizer_fn, 16)
"""

THREE_LAYERS = """
def optimizer_fn():
  lr = config_lr(...)
  opt = mox.get_optimizer_fn('momentum', learning_rate=lr, momentum=0.9)()
  opt = mox.get_optimizer_wrapper_fn('lars', opt, ratio=0.001, weight_decay=0.0001)()
  opt = mox.get_optimizer_wrapper_fn('batch_gradients', opt, num_batches=8, sync_on_apply=True)()
  return opt

run(optimizer_fn, 32)
"""

#: Pitfall 5-1-1.
NOT_A_FUNCTION = """
mox.run(input_fn=input_fn, model_fn=model_fn, run_mode=mox.ModeKeys.TRAIN, batch_size=4, max_number_of_steps=1,
        optimizer_fn=tf.train.MomentumOptimizer(learning_rate=0.01, momentum=0.9))
"""


def output_of(tmp_path: Path, real_data: Path, optimizer: str, *words: str, code: int = 0) -> str:
    """What the program prints, started with `moxing run`; its last words are those of the command line."""
    for flower in ("daisy", "roses", "tulips"):
        target = tmp_path / "photos" / flower
        target.mkdir(parents=True)
        for photo in sorted((real_data / "flowers" / flower).glob("*.jpg"))[:6]:
            shutil.copy(photo, target)
    script = tmp_path / "program.py"
    program = PROGRAM.format(folder=str(tmp_path / "photos"), log_dir=str(tmp_path / "log"))
    script.write_text(program + textwrap.dedent(optimizer))
    options = [word for word in words if word.startswith(("--workers", "--ps"))]
    flags = [word for word in words if word not in options]
    done = warm_moxing("run", *options, script, *flags, cwd=tmp_path, timeout=580)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_basic_optimizers(tmp_path, real_data):
    output = output_of(tmp_path, real_data, BASIC)
    assert output.count("TRAINED") == 3
    assert [int(step) for step in re.findall(r"step: (\d+)\(", output)] == list(range(6))


def test_an_optimizer_is_not_a_function(tmp_path, real_data):
    output = output_of(tmp_path, real_data, NOT_A_FUNCTION, code=1)
    assert "MomentumOptimizer" in output
    assert "lambda" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(BATCH_GRADIENTS, id="batch_gradients", marks=pytest.mark.slow),
        pytest.param(THREE_LAYERS, id="three layers"),
    ],
)
def test_wrappers_in_one_process(tmp_path, real_data, optimizer):
    output = output_of(tmp_path, real_data, optimizer)
    assert "Using OptimizerWrapper" not in output
    assert "TRAINED" in output


@pytest.mark.slow
def test_three_layers_in_an_asynchronous_job(tmp_path, real_data):
    output = output_of(tmp_path, real_data, THREE_LAYERS, "--workers=2", "--ps=1", "--sync_replicas=False")
    assert "Using OptimizerWrapper" not in output
    assert output.count("TRAINED") == 2


@pytest.mark.slow
def test_warning_of_a_synchronous_job(tmp_path, real_data):
    """Pitfall 5-2-1."""
    output = output_of(tmp_path, real_data, BATCH_GRADIENTS, "--workers=2", "--ps=1")
    assert "WARNING:tensorflow:Using OptimizerWrapper when sync_replicas is True may cause performance loss." in output
    assert output.count("TRAINED") == 2
