"""One process of a job that goes through a folder of images and tells which it saw.

The JSON text in the environment variable JOB says where they are (`base_dir`), the variables that lead to their store
(`environment`), `log_dir` and `steps`.
"""

from __future__ import annotations

import json
import os


def main() -> None:
    """Trains, and prints the names of the images in the order in which they came."""
    told = json.loads(os.environ["JOB"])
    os.environ.update(told["environment"])

    import moxing.tensorflow as mox

    # isort: split
    import tensorflow.compat.v1 as tf

    seen: list[str] = []

    def input_fn(mode):
        tf.set_random_seed(7)
        dataset = mox.ImageClassificationRawDataset(mox.ImageClassificationRawMetadata(told["base_dir"]), image_size=4)
        return dataset.get(["image_name", "image"])

    def model_fn(inputs, mode):
        name, image = inputs
        weight = tf.get_variable("w", shape=[], initializer=tf.zeros_initializer())
        loss = weight * tf.reduce_mean(tf.cast(image, tf.float32))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss}, output_info={"name": name})

    def output_fn(outputs):
        seen.extend(name.decode() for output in outputs for name in output["name"].ravel())

    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(1e-6),
        output_fn=output_fn,
        output_every_n_steps=1,
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=7,
        log_dir=told["log_dir"],
        max_number_of_steps=told["steps"],
    )
    print("RESULT", json.dumps({"seen": seen}), flush=True)


if __name__ == "__main__":
    main()
