"""Fit a straight line: the smallest complete MoXing program.

Shows the three callbacks of `mox.run` (`input_fn`, `model_fn`, `optimizer_fn`), training, and evaluation of the
checkpoint that the training wrote.

Run it:

    moxing run examples/train_line.py --train_url=line_log

Run it again and MoXing finds the finished checkpoint in `line_log`: it does not train, only evaluates. With a larger
`--max_steps` the training resumes from the checkpoint.
"""

import tensorflow as tf

import moxing.tensorflow as mox

tf.flags.DEFINE_string("train_url", "line_log", "Directory for checkpoints and summaries")
tf.flags.DEFINE_integer("max_steps", 300, "Training steps")
flags = tf.flags.FLAGS


def input_fn(mode, **kwargs):
    # One sample. MoXing groups samples into batches.
    x = tf.random_uniform([], minval=-1.0, maxval=1.0)
    return x, 3.0 * x + 2.0 + tf.random_normal([], stddev=0.05)


def model_fn(inputs, mode, **kwargs):
    x, y = inputs  # With a batch dimension: both have the shape [32].
    slope = tf.get_variable("slope", [], initializer=tf.zeros_initializer())
    intercept = tf.get_variable("intercept", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(slope * x + intercept - y))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss, "slope": slope, "intercept": intercept})


def optimizer_fn():
    return tf.train.GradientDescentOptimizer(learning_rate=0.1)


def main(_):
    tf.set_random_seed(1)
    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=optimizer_fn,
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=32,
        log_dir=flags.train_url,
        max_number_of_steps=flags.max_steps,
        log_every_n_steps=50,
    )
    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        run_mode=mox.ModeKeys.EVAL,
        batch_size=32,
        checkpoint_path=flags.train_url,
        max_number_of_steps=10,
    )
    print("y = %.2f x + %.2f" % (result.log_info["slope"], result.log_info["intercept"]))


if __name__ == "__main__":
    tf.app.run()
