"""An Estimator script as users write them, for jobs of several processes; the variable JOB says what it trains."""

import json
import os
import time

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.INFO)
JOB = {"steps": 200, "save": 50, "delay": 0.0, "batches": -1, "meet": 0, "sync": False, "call": "train_and_evaluate"}
JOB |= json.loads(os.environ["JOB"])
X = np.random.RandomState(0).rand(320, 6).astype(np.float32)
Y = (X.sum(1) > 3).astype(np.int32)


def meet():
    """Waits until as many processes have begun to train as are to meet."""
    folder = os.path.join(JOB["model_dir"], "met")
    os.makedirs(folder, exist_ok=True)
    open(os.path.join(folder, str(os.getpid())), "a").close()
    while len(os.listdir(folder)) < JOB["meet"]:
        time.sleep(0.01)


def input_fn():
    def sample(number):
        meet()
        time.sleep(JOB["delay"])
        return X[number], Y[number]

    def read(number):
        x, y = tf.py_func(sample, [number], [tf.float32, tf.int32])
        return tf.reshape(x, [6]), tf.reshape(y, [])

    batches, slow = JOB["batches"], JOB["delay"] or JOB["meet"]
    data = tf.data.Dataset.range(320).repeat().shuffle(320)
    data = data.map(read) if slow else data.batch(16).map(lambda n: (tf.gather(X, n), tf.gather(Y, n)))
    data = data.batch(4) if slow else data
    return data if batches < 0 else data.take(batches)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(80)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(tf.layers.dense(features, 8, tf.nn.relu), 2)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"p": tf.nn.softmax(logits)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer, hooks = tf.train.AdamOptimizer(0.02), []
    if JOB["sync"]:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2, total_num_replicas=2)
        is_chief = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "chief"
        hooks = [optimizer.make_session_run_hook(is_chief)] if mode == tf.estimator.ModeKeys.TRAIN else []
    step = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return tf.estimator.EstimatorSpec(mode, None, loss, step, metrics, training_hooks=hooks)


def serving_input_fn():
    images = tf.placeholder(tf.float32, [None, 6])
    return tf.estimator.export.TensorServingInputReceiver(images, images)


config = tf.estimator.RunConfig(
    model_dir=JOB["model_dir"],
    save_checkpoints_steps=JOB["save"],
    session_config=tf.ConfigProto(allow_soft_placement=True) if JOB.get("session_config") else None,
    experimental_max_worker_delay_secs=0,
)
one = tf.estimator.Estimator(model_fn, config=config)
if JOB["call"] == "train":
    one.train(input_fn, max_steps=JOB["steps"])
else:
    exporter = tf.estimator.FinalExporter("last", serving_input_fn)
    tf.estimator.train_and_evaluate(
        one,
        tf.estimator.TrainSpec(input_fn, max_steps=JOB["steps"]),
        tf.estimator.EvalSpec(
            eval_input_fn, exporters=exporter, start_delay_secs=0, throttle_secs=JOB.get("throttle", 1)
        ),
    )
print("ENDED", config.task_type, config.task_id)
