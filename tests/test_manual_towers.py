"""The manual's promise for several GPUs: the command line decides, the script stays as it is."""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from helpers.launcher import MAIN, output_of
from helpers.warm import PIPE, STDOUT, Program, Surroundings, WarmProcess

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds" / "scripts"
CLASSES = ("daisy", "dandelion", "roses", "sunflowers", "tulips")

with_scripts = pytest.mark.skipif(not SCRIPTS.is_dir(), reason=f"the manual's programs are not at {SCRIPTS}")

#: The flowers case of the manual (1.4) with a small network of the zoo; what a tower finds is printed as it is built.
FLOWERS = """
import sys
import tensorflow as tf
import moxing.tensorflow as mox
from moxing.tensorflow.optimizer import learning_rate_scheduler
slim = tf.contrib.slim

tf.flags.DEFINE_string('data_url', None, 'Data directory.')
tf.flags.DEFINE_string('train_url', None, 'Log directory.')
tf.flags.DEFINE_integer('batch_size', 8, 'Samples per batch.')
flags = tf.flags.FLAGS


def main(*args):
  num_gpus = mox.get_flag('num_gpus')
  num_workers = len(mox.get_flag('worker_hosts').split(','))
  data_meta = mox.ImageClassificationRawMetadata(base_dir=flags.data_url)

  def input_fn(mode, **kwargs):
    augmentation_fn = mox.get_data_augmentation_fn(name='resnet_v1_20', run_mode=mode,
                                                   output_height=32, output_width=32)
    dataset = mox.ImageClassificationRawDataset(data_meta, batch_size=flags.batch_size, num_epochs=2,
                                                augmentation_fn=augmentation_fn)
    image, label = dataset.get(['image', 'label'])
    return image, label

  def model_fn(inputs, mode, **kwargs):
    images, labels = inputs
    mox_model_fn = mox.get_model_fn(name='resnet_v1_20', run_mode=mode, num_classes=data_meta.num_classes,
                                    weight_decay=0.00004)
    logits, _ = mox_model_fn(images)
    labels_one_hot = slim.one_hot_encoding(labels, data_meta.num_classes)
    loss = tf.losses.softmax_cross_entropy(logits=logits, onehot_labels=labels_one_hot)
    regularization_losses = mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    print('TOWER', mode, len(regularization_losses), len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)),
          len(mox.get_collection(tf.GraphKeys.UPDATE_OPS)), len(mox.get_collection(tf.GraphKeys.LOSSES)))
    regularization_loss = tf.add_n(regularization_losses)
    loss = loss + regularization_loss
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
    export_spec = mox.ExportSpec(inputs_dict={'images': images}, outputs_dict={'logits': logits})
    return mox.ModelSpec(loss=loss, log_info={'loss': loss, 'accuracy': accuracy}, export_spec=export_spec)

  def optimizer_fn():
    lr = learning_rate_scheduler.piecewise_lr('1:0.05,2:0.005', num_samples=data_meta.total_num_samples,
                                              global_batch_size=flags.batch_size * num_gpus * num_workers)
    return tf.train.MomentumOptimizer(learning_rate=lr, momentum=0.9)

  mox.run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=optimizer_fn, run_mode=mox.ModeKeys.TRAIN,
          log_dir=flags.train_url, export_model=mox.ExportKeys.TF_SERVING, max_number_of_steps=sys.maxint)


if __name__ == '__main__':
  tf.app.run(main=main)
"""


WAITING = """
import tensorflow as tf
import moxing.tensorflow as mox


def model_fn(inputs, mode):
  return mox.ModelSpec(loss=tf.square(tf.get_variable('w', [])))


mox.run(input_fn=lambda mode: tf.constant(0.0), model_fn=model_fn, run_mode=mox.ModeKeys.TRAIN, batch_size=2,
        optimizer_fn=mox.get_optimizer_fn('sgd', learning_rate=0.1), max_number_of_steps=1)
"""


@pytest.mark.slow
@pytest.mark.realdata
@with_scripts
def test_getting_started_with_four_gpus(tmp_path, real_data):
    urls = [f"--data_url={real_data / 'mnist'}", f"--train_url={tmp_path / 'log'}"]
    train = Path(shutil.copy(SCRIPTS / "train_tf_mnist.py", tmp_path))
    output = output_of(train, *urls, "--num_gpus=4")
    assert output.count("--num_gpus=4, but this machine has 0: the 4 towers run on logical CPU") == 1
    # 2,750 batches, four a step, two of them left for the last one.
    assert "step: 687(global step: 687)" in output
    assert "step: 688(" not in output
    assert "Traceback" not in output
    assert "rendezvous" not in output
    reader = tf.train.load_checkpoint(str(tmp_path / "log"))
    assert set(reader.get_variable_to_shape_map()) == {"W", "b", "global_step"}
    evaluate = Path(shutil.copy(SCRIPTS / "eval_tf_mnist.py", tmp_path))
    for gpus in (1, 2):
        output = output_of(evaluate, *urls, f"--num_gpus={gpus}")
        accuracy = float(re.search(r"\[EVAL\] .*samples: 10000\taccuracy: ([0-9.]+)", output).group(1))
        assert accuracy >= 0.9


@with_scripts
def test_placeholders_on_every_tower(tmp_path):
    """§4.5.1: each tower feeds a placeholder of its own."""
    script = Path(shutil.copy(SCRIPTS / "manual_4_5_1_placeholder.py", tmp_path))
    output = output_of(script, "--num_gpus=2")
    losses = [float(value) for value in re.findall(r"\tloss: ([0-9.]+)", output)]
    assert len(losses) == 11
    assert losses[-1] < losses[0]


@pytest.mark.slow
@with_scripts
def test_keras_layers_on_every_tower(tmp_path):
    """§4.6: an embedding, an LSTM and dense layers of Keras, shared by the towers; the names are those of one."""
    names = []
    for gpus in (1, 2):
        text = (SCRIPTS / "manual_4_6_keras.py").read_text()
        for old, new in {
            "/tmp/delete_me/keras_model.json": str(tmp_path / "model.json"),
            "log_dir=None": f"log_dir='{tmp_path / str(gpus)}'",
            "=50": "=3",
        }.items():
            assert old in text
            text = text.replace(old, new)
        script = tmp_path / f"keras_{gpus}.py"
        script.write_text(text)
        output_of(script, f"--num_gpus={gpus}", "--variable_update=replicated")
        names.append(set(tf.train.load_checkpoint(str(tmp_path / str(gpus))).get_variable_to_shape_map()))
    assert names[0] == names[1]


@pytest.mark.slow
@pytest.mark.realdata
def test_flowers_with_two_gpus(tmp_path, real_data):
    for name in CLASSES:
        (tmp_path / "photos" / name).mkdir(parents=True)
        for photo in sorted((real_data / "flowers" / name).glob("*.jpg"))[:9]:
            shutil.copy(photo, tmp_path / "photos" / name)
    script = tmp_path / "mox_flowers.py"
    script.write_text(FLOWERS)
    output = output_of(script, f"--data_url={tmp_path / 'photos'}", f"--train_url={tmp_path / 'log'}", "--num_gpus=2")
    towers = re.findall(r"TOWER TRAIN (\d+) (\d+) (\d+) (\d+)", output)
    assert len(towers) == 2
    # Losses on both, moving averages on the first.
    assert [(int(mine), int(all_), int(losses)) for mine, all_, _, losses in towers] == [(20, 20, 1)] * 2
    assert int(towers[0][2]) > 20
    assert towers[1][2] == "0"
    # 90 photos in batches of 8, two a step.
    assert "step: 5(global step: 5)" in output
    assert "step: 6(" not in output
    losses = [float(value) for value in re.findall(r"\tloss: ([0-9.]+)", output)]
    assert np.isfinite(losses).all()
    # Trained on two towers, served by one model without them.
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], str(tmp_path / "log" / "1"))
        signature = meta.signature_def["predict_object"]
        assert not [op.name for op in session.graph.get_operations() if "tower_" in op.name]
        images = np.zeros([3, 32, 32, 3], np.float32)
        logits = session.run(signature.outputs["logits"].name, {signature.inputs["images"].name: images})
        assert logits.shape == (3, 5)


#: The first message about those that are missing comes after half a second, not half a minute.
LESS_PATIENT = """
from moxing.tensorflow.cluster import connectivity
connectivity.WAIT_MESSAGE_AFTER = 0.5
"""


@pytest.mark.timeout(120)
def test_pitfall_2_3_1(tmp_path):
    """A worker with the task_index of another machine says so, where TensorFlow only says that it is waiting."""
    script = tmp_path / "train.py"
    script.write_text(LESS_PATIENT + WAITING)
    # Nobody listens on the first, and the second is of no machine, and so not of this one.
    hosts = ["127.0.0.9", "198.51.100.101"]
    words = [
        "--job_name=worker",
        "--task_index=1",
        f"--ps_hosts={hosts[0]}:2222",
        f"--worker_hosts={','.join(f'{host}:2223' for host in hosts)}",
    ]
    environment = {**os.environ, "http_proxy": "http://user:secret@proxy.example:3128"}
    program = Program("moxing", MAIN, ("run", str(script), *words))
    process = WarmProcess(program, Surroundings(environment=environment), stdout=PIPE, stderr=STDOUT)
    timer = threading.Timer(90, process.kill)
    timer.start()
    output = ""
    try:
        for line in process.stdout:
            output += line
            if "Wrong task_index for this machine" in line:
                break  # it would go on waiting
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    assert "Wrong task_index for this machine: --task_index makes it worker 1 at 198.51.100.101:2223" in output
    assert "ps 0" in output
    assert "secret" not in output
