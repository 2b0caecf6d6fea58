"""One process of a job with helper hooks: the gradient of a worker is its samples' mean, the rate follows the steps.

Its last line is RESULT and a JSON text.
"""

import json
import sys

import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox


def input_fn(mode):
    data = tf.data.Dataset.range(80 if mode == mox.ModeKeys.TRAIN else 10).map(
        lambda number: tf.cast(number, tf.float32)
    )
    return tf.data.make_one_shot_iterator(data).get_next()


def model_fn(inputs, mode):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = w * tf.reduce_mean(inputs[0])
    hooks = [
        mox.GradientNormHook(2),
        mox.ThroughputHook(2),
        mox.NanGuardHook({"w": w}),
        # A step of both workers takes 8 samples: it comes after every second one.
        mox.BestCheckpointHook({"number": tf.reduce_mean(inputs[0]), "w": w}, "w", 8, 16),
        mox.RunEndHook(lambda end: ends.append([end.reason, end.global_step])),
    ]
    return mox.ModelSpec(loss=loss, log_info={"w": tf.identity(w)}, hooks=hooks)


def optimizer_fn():
    # A function is called where the updates are built, which here is inside of a branch.
    return tf.train.GradientDescentOptimizer(lambda: (tf.cast(tf.train.get_global_step(), tf.float32) + 1.0) / 64)


ends: list = []


def main() -> None:
    log_dir = next(word for word in sys.argv if word.startswith("--log_directory=")).partition("=")[2]
    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=optimizer_fn,
        run_mode=mox.ModeKeys.TRAIN,
        inter_mode=mox.ModeKeys.EVAL,
        batch_size=4,
        log_dir=log_dir,
        max_number_of_steps=7,
        save_summary_steps=3,
    )
    print("RESULT", json.dumps({"ends": ends}), flush=True)


if __name__ == "__main__":
    main()
