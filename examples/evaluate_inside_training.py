"""Evaluate while training, and stop when the model no longer improves.

Shows `inter_mode=mox.ModeKeys.EVAL`: the training also builds the model for evaluation, and `mox.EarlyStoppingHook`
evaluates after every epoch. With `restore_best=True` the run ends with the best weights.

Run it:

    moxing run examples/evaluate_inside_training.py --train_url=early_log

Run it again and it ends at once: the checkpoint in `early_log` contains the state of the hook, which has stopped
the training. To train again, delete `early_log` or add `--restart`.
"""

import numpy as np
import tensorflow as tf

import moxing.tensorflow as mox

tf.flags.DEFINE_string("train_url", "early_log", "Directory for checkpoints and summaries")
tf.flags.DEFINE_integer("max_steps", 10000, "Upper bound of the training steps")
flags = tf.flags.FLAGS

BATCH_SIZE = 32
SAMPLES_IN_TRAIN = 800
SAMPLES_IN_EVAL = 200

# Which of two overlapping clouds does a point belong to?
rng = np.random.RandomState(0)
labels = rng.randint(0, 2, size=SAMPLES_IN_TRAIN + SAMPLES_IN_EVAL)
points = (rng.normal(size=[len(labels), 4]) + labels[:, None]).astype(np.float32)


def input_fn(mode, **kwargs):
    training = mode == mox.ModeKeys.TRAIN
    part = slice(0, SAMPLES_IN_TRAIN) if training else slice(SAMPLES_IN_TRAIN, None)
    dataset = tf.data.Dataset.from_tensor_slices((points[part], labels[part]))
    if training:
        dataset = dataset.shuffle(SAMPLES_IN_TRAIN).repeat()
    return dataset.make_one_shot_iterator().get_next()


def model_fn(inputs, mode, **kwargs):
    features, label = inputs
    logits = tf.layers.dense(tf.layers.dense(features, 16, activation=tf.nn.relu), 2)
    loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, label, 1), tf.float32))
    metrics = {"loss": loss, "accuracy": accuracy}
    early_stopping = mox.EarlyStoppingHook(
        monitor_info=metrics,
        monitor="loss",
        batch_size=BATCH_SIZE,
        samples_in_train=SAMPLES_IN_TRAIN,
        samples_in_eval=SAMPLES_IN_EVAL,
        min_delta=0.001,
        patience=3,
        restore_best=True,
    )
    return mox.ModelSpec(loss=loss, log_info=metrics, hooks=[early_stopping])


def main(_):
    tf.set_random_seed(1)
    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("momentum", learning_rate=0.05, momentum=0.9),
        run_mode=mox.ModeKeys.TRAIN,
        inter_mode=mox.ModeKeys.EVAL,
        batch_size=BATCH_SIZE,
        log_dir=flags.train_url,
        max_number_of_steps=flags.max_steps,
        log_every_n_steps=25,
    )
    print("stopped at step %d of at most %d" % (result.global_step, flags.max_steps))


if __name__ == "__main__":
    tf.app.run()
