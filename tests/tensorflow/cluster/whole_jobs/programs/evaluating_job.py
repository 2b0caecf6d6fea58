"""A line that is trained and evaluated in between: one process of a job, or all of it.

What it does is told by the JSON text in the environment variable JOB: `hook` and its `arguments`, `batch_size`,
`steps`, `log_dir`; `together`: the workers wait for each other after their first step; `two_sets`; `seconds` that a
sample of the evaluation takes once the file `go` is there; `batches`, the length of ready batches of the evaluation.
Its last line is RESULT and a JSON text.
"""

from __future__ import annotations

import json
import os
import time

import numpy as np
from linear_job import data

#: Samples of an epoch, and of the evaluation's two sets.
SAMPLES, EVALUATED, OTHERS = 56, 23, 9
LEARNING_RATE = 0.02


def main() -> None:
    import moxing.tensorflow as mox

    # isort: split
    import tensorflow.compat.v1 as tf
    from meeting import FirstStepsTogether

    tf.logging.set_verbosity(tf.logging.INFO)
    job = json.loads(os.environ["JOB"])
    batches = job.get("batches")

    def examples(mode, samples):
        features, labels = data(samples)
        dataset = tf.data.Dataset.from_tensor_slices((np.arange(samples), features, labels))
        if mode == mox.ModeKeys.TRAIN:
            dataset = dataset.repeat()
        elif job.get("seconds"):

            def wait(value):
                print("EVALUATING", flush=True)
                while not os.path.exists(job["go"]):
                    time.sleep(0.01)
                time.sleep(job["seconds"])
                return value

            def late(number, *others):
                (number,) = tf.py_func(wait, [number], [tf.int64])
                number.set_shape([])
                return (number, *others)

            dataset = dataset.map(late)
        if batches:
            dataset = dataset.batch(job["batch_size"] if mode == mox.ModeKeys.TRAIN else batches)
        return tf.data.make_one_shot_iterator(dataset).get_next()

    def input_fn(mode):
        return examples(mode, SAMPLES if mode == mox.ModeKeys.TRAIN else EVALUATED)

    def others_fn(mode):
        return examples(mode, OTHERS)

    def model_fn(inputs, mode):
        number, x, y = inputs
        weights = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        bias = tf.Variable(0.0, name="b")
        loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, weights), 1) + bias - y))
        metrics = {"number": tf.reduce_mean(tf.cast(number, tf.float32)), "loss": loss}
        arguments = {"batch_size": 14, "samples_in_train": SAMPLES, **job["arguments"]}
        hooks = [getattr(mox, job["hook"])(metrics, **arguments)]
        if job.get("together"):
            hooks.append(FirstStepsTogether())
        if job.get("two_sets"):
            hooks.append(mox.LogEvaluationMetricHook(metrics, 14, SAMPLES * 2, input_fn=others_fn, prefix="[OTHERS]"))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss}, hooks=hooks)

    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(LEARNING_RATE),
        run_mode=mox.ModeKeys.TRAIN,
        inter_mode=mox.ModeKeys.EVAL,
        batch_size=job["batch_size"],
        auto_batch=not batches,
        log_dir=job["log_dir"],
        max_number_of_steps=job["steps"],
        log_every_n_steps=0,
    )
    print("RESULT", json.dumps({"global_step": int(result.global_step)}), flush=True)


if __name__ == "__main__":
    main()
