"""Train with two worker processes on one machine.

Shows synchronous training without parameter servers: each worker reads its own share of the data, and the workers
average their gradients after every step. The script is the same as for one process.

Run it:

    moxing run --workers 2 examples/two_workers.py --train_url=workers_log

The same script in one process, and with a parameter server. Each run has a log directory of its own: in `workers_log`
the training is already complete.

    moxing run examples/two_workers.py --train_url=one_log
    moxing run --workers 2 --ps 1 examples/two_workers.py --train_url=ps_log
"""

import numpy as np
import tensorflow as tf

import moxing.tensorflow as mox
from moxing.tensorflow.executor import ops_adapter

tf.flags.DEFINE_string("train_url", "workers_log", "Directory for checkpoints and summaries; only worker 0 writes it")
tf.flags.DEFINE_integer("max_steps", 60, "Training steps of all workers together")
flags = tf.flags.FLAGS

points = np.random.RandomState(0).normal(size=[512, 4]).astype(np.float32)
sums = points.sum(axis=1)


def input_fn(mode, **kwargs):
    # The whole dataset. MoXing gives every worker its own share of it.
    dataset = tf.data.Dataset.from_tensor_slices((points, sums)).shuffle(len(points)).repeat()
    return dataset.make_one_shot_iterator().get_next()


def model_fn(inputs, mode, **kwargs):
    x, y = inputs
    predicted = tf.layers.dense(x, 1)[:, 0]
    loss = tf.reduce_mean(tf.square(predicted - y))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss})


def main(_):
    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.1),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=16,  # For each worker: a step of two workers takes 32 samples.
        log_dir=flags.train_url,
        max_number_of_steps=flags.max_steps,
        log_every_n_steps=20,
    )
    # size() is the number of workers, rank() the number of this one.
    print("worker %d of %d: step %d" % (ops_adapter.rank(), ops_adapter.size(), result.global_step))


if __name__ == "__main__":
    tf.app.run()
