"""Seconds from the call of `mox.run` to its first batch, for a training that resumes at a given step.

A first run writes a checkpoint; its position in the data is set to that step, and the run that resumes from it
is timed. `input_pipeline.py` starts this for a near and a far step.
"""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf
from common import BATCH, SIDE, arguments, cpu_seconds


def main() -> None:
    (kind, step), folder, _ = arguments()
    if kind == "tfrecord":
        metadata = mox.ImageClassificationTFRecordMetadata(str(folder / "tfrecord"), "flowers_train_*.tfrecord")
    else:
        metadata = mox.ImageClassificationRawMetadata(str(folder / "jpeg"))
    arrived = []

    def input_fn(mode):
        augmentation = mox.get_data_augmentation_fn("vgg_16", mode, SIDE, SIDE)
        dataset_class = (
            mox.ImageClassificationTFRecordDataset if kind == "tfrecord" else mox.ImageClassificationRawDataset
        )
        return dataset_class(metadata, batch_size=BATCH, augmentation_fn=augmentation).get(["image", "label"])

    def model_fn(inputs, mode):
        images, labels = inputs
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        return mox.ModelSpec(loss=weight * tf.reduce_mean(images), output_info={"labels": labels})

    def run(log_dir, steps):
        mox.run(
            input_fn=input_fn, model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.1),
            output_fn=lambda outputs: arrived.append(time.perf_counter()), output_every_n_steps=1,
            run_mode=mox.ModeKeys.TRAIN, log_dir=log_dir, max_number_of_steps=steps, log_every_n_steps=0,
        )  # fmt: skip

    with tempfile.TemporaryDirectory() as log_dir:
        run(log_dir, 1)
        position = Path(log_dir) / "model.ckpt-1.moxing.json"
        content = json.loads(position.read_text())
        content.update(elements=int(step), samples=[int(step) * BATCH])
        position.write_text(json.dumps(content))
        arrived.clear()
        started, cpu = time.perf_counter(), cpu_seconds()
        run(log_dir, 2)
        print(f"@{arrived[0] - started} {cpu_seconds() - cpu}")


if __name__ == "__main__":
    main()
