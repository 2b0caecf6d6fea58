"""The manual with its object stores: tf.gfile (2.4), a frame written by output_fn (4.3), and a training that has
its data, log and export there (2.4, 6) and is killed in the middle of an upload."""

from __future__ import annotations

import io
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

import moxing.tensorflow as mox
from helpers import launcher, warm
from moxing.framework.file.s3.clients import get_client

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds" / "scripts"


@pytest.fixture
def bucket(s3_folder):
    """The bucket of the manual."""
    get_client("s3").create_bucket("dls-test")


def output_of(tmp_path: Path, script: str, *arguments: str) -> str:
    (tmp_path / "script.py").write_text(script)
    return launcher.output_of(tmp_path / "script.py", *arguments)


def test_2_4_1_gfile(bucket, tmp_path):
    mox.file.write("s3://dls-test/a.txt", "from the store\n")
    script = "import tensorflow as tf\nf=tf.gfile.Open('s3://dls-test/a.txt', 'r')\nprint(f.read())\n"
    assert "from the store" in output_of(tmp_path, script)


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.skipif(not SCRIPTS.is_dir(), reason=f"the manual's programs are not at {SCRIPTS}")
def test_4_3_a_frame_of_outputs(bucket, tmp_path, real_data):
    """The manual's program; the local folders are ours, and its images small, for the test's sake."""
    for flower in ("daisy", "roses"):
        (tmp_path / "eval" / flower).mkdir(parents=True)
        for photo in sorted((real_data / "flowers" / flower).glob("*.jpg"))[:5]:
            shutil.copy(photo, tmp_path / "eval" / flower)
    with tf.Graph().as_default(), tf.Session() as session:
        mox.get_model_fn(name="resnet_v1_50", run_mode="PREDICT", num_classes=1000)(tf.zeros([1, 32, 32, 3]))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "checkpoint_path" / "model.ckpt"), global_step=0)
    text = (SCRIPTS / "manual_4_3_output_fn.py").read_text()
    for old, new in (
        ("/export1/flowers/raw/split/eval", str(tmp_path / "eval")),
        ("/tmp/checkpoint_path", str(tmp_path / "checkpoint_path")),
        ("[224, 224]", "[32, 32]"),
        ("batch_size=32", "batch_size=4"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    output_of(tmp_path, text)
    frame = pd.read_csv(io.StringIO(mox.file.read("s3://dls-test/outputs.txt")), index_col=0)
    assert len(frame) == 10
    assert "prediction" in str(frame.iloc[0, 0])


#: A script of the manual's shape: paths from the command line, images of folders, a model that is exported.
TRAINING = """
import tensorflow as tf
import moxing.tensorflow as mox
slim = tf.contrib.slim

tf.flags.DEFINE_string('data_url', None, 'Data directory.')
tf.flags.DEFINE_string('train_url', None, 'Log directory.')
tf.flags.DEFINE_integer('steps', 10**9, 'Where to end.')
flags = tf.flags.FLAGS


def main(*args):
  data_meta = mox.ImageClassificationRawMetadata(base_dir=flags.data_url)

  def input_fn(mode):
    dataset = mox.ImageClassificationRawDataset(data_meta)
    image, label = dataset.get(['image', 'label'])
    image = tf.image.resize_images(image, [16, 16])
    image.set_shape([16, 16, 3])
    return image, label

  def model_fn(inputs, mode):
    images, labels = inputs
    net = slim.conv2d(images / 255.0, 16, [3, 3], stride=2)
    net = slim.fully_connected(slim.flatten(net), 64)
    logits = slim.fully_connected(net, data_meta.num_classes, activation_fn=None)
    loss = tf.losses.softmax_cross_entropy(slim.one_hot_encoding(labels, data_meta.num_classes), logits)
    export_spec = mox.ExportSpec(inputs_dict={'images': images}, outputs_dict={'logits': logits}, version='model')
    return mox.ModelSpec(loss=loss, log_info={'loss': loss}, export_spec=export_spec)

  mox.run(input_fn=input_fn,
          model_fn=model_fn,
          optimizer_fn=mox.get_optimizer_fn('momentum', learning_rate=0.01, momentum=0.9),
          run_mode=mox.ModeKeys.TRAIN,
          batch_size=8,
          log_dir=flags.train_url,
          max_number_of_steps=flags.steps,
          save_model_steps=20,
          save_summary_steps=10,
          log_every_n_steps=20,
          export_model=mox.ExportKeys.TF_SERVING)


if __name__ == '__main__':
  tf.app.run(main=main)
"""


def wait_for(condition, process, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"the training has ended: {process.returncode}\n{process.log.read_text()}"
        assert time.monotonic() < until, f"still waiting after {seconds} s\n{process.log.read_text()}"
        time.sleep(0.05)


def committed(log_dir: str) -> list[str]:
    """The checkpoints that count, oldest first."""
    if not mox.file.exists(log_dir + "/checkpoint"):
        return []
    return [line.split('"')[1] for line in mox.file.read(log_dir + "/checkpoint").splitlines() if line[:3] == "all"]


@pytest.fixture
def training(proxy, s3_folder, tmp_path):
    """Starts the script, each time on a machine whose disk is empty; images and log are on the store."""
    for label, colour in enumerate(("blue", "green", "red")):
        for number in range(10):
            image = io.BytesIO()
            Image.new("RGB", (20 + number, 24), colour).save(image, "JPEG")
            mox.file.write(f"{s3_folder}/data/{label}_{colour}/{number}.jpg", image.getvalue(), binary=True)
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    started = []

    def start(*arguments):
        disk = tmp_path / f"disk-{len(started)}"
        disk.mkdir()
        environment = {**os.environ, "TMPDIR": str(disk), "XDG_CACHE_HOME": str(disk / "cache")}
        urls = (f"--data_url={s3_folder}/data", f"--train_url={s3_folder}/log")
        program = warm.Program("moxing", launcher.MAIN, ("run", str(script), *urls, *arguments))
        surroundings = warm.Surroundings(tmp_path, environment, session=True)
        log = tmp_path / f"{len(started)}.log"
        process = warm.WarmProcess(program, surroundings, stdout=log, stderr=warm.STDOUT)
        process.log = log
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_6_killed_during_an_upload_and_gone_on_with_an_empty_disk(proxy, s3_folder, tmp_path, training):
    log_dir = f"{s3_folder}/log"
    process = training()
    wait_for(lambda: len(committed(log_dir)) >= 2, process)
    wait_for(lambda: mox.file.glob(log_dir + "/events.*"), process)
    # The data of a checkpoint takes seconds from here on.
    proxy.fail("slow_upload", times=float("inf"), match=lambda method, target: ".data-" in target)
    begun = len(proxy.requests)
    wait_for(lambda: any(".data-" in target for _, target in proxy.requests[begun:]), process)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    proxy.fail("", times=0)
    last = committed(log_dir)[-1]
    cut = next(target for _, target in proxy.requests[begun:] if ".data-" in target).rpartition("/")[2]
    assert not mox.file.exists(f"{log_dir}/{cut}")

    steps = int(last.rpartition("-")[2]) + 30
    process = training(f"--steps={steps}")
    assert process.wait(200) == 0, process.log.read_text()
    assert f"Restoring parameters from {log_dir}/{last}" in process.log.read_text()
    assert committed(log_dir)[-1] == f"model.ckpt-{steps}"

    mox.file.copy_parallel(f"{log_dir}/model", str(tmp_path / "exported"))
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], str(tmp_path / "exported")).signature_def["serving_default"]
        images = np.zeros([3, 16, 16, 3], np.float32)
        images[[0, 1, 2], :, :, [2, 1, 0]] = 255.0
        logits = session.run(signature.outputs["logits"].name, {signature.inputs["images"].name: images})
    assert logits.shape == (3, 3) and np.isfinite(logits).all()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_6_a_store_that_goes_away_and_comes_back(proxy, s3_folder, training):
    """The training waits for its data, and goes on; a signal meanwhile has it save and leave."""
    log_dir = f"{s3_folder}/log"
    process = training()
    wait_for(lambda: len(committed(log_dir)) >= 2, process)
    proxy.fail("reset", times=float("inf"))
    wait_for(lambda: "Waiting for data" in process.log.read_text(), process)
    proxy.fail("", times=0)
    wait_for(lambda: "The store is available again." in process.log.read_text(), process)
    # By its name: how many are kept is limited, and they may be as many already.
    before = committed(log_dir)[-1]
    wait_for(lambda: committed(log_dir)[-1] != before, process)

    # This time only the images are away.
    proxy.fail("reset", times=float("inf"), match=lambda method, target: ".jpg" in target)
    wait_for(lambda: process.log.read_text().count("Waiting for data") == 2, process)
    process.terminate()
    assert process.wait(60) != 0
    saved = committed(log_dir)[-1]
    proxy.fail("", times=0)
    process = training(f"--steps={int(saved.rpartition('-')[2]) + 1}")
    assert process.wait(200) == 0, process.log.read_text()
    assert f"Restoring parameters from {log_dir}/{saved}" in process.log.read_text()
