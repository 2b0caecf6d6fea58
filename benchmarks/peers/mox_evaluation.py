"""An evaluation inside training, and the same one alone: seconds of each, without graph building and start-up.

Prints a line `@inside alone` for every round, then `@@` and the number of `model_fn` calls of a training run.
"""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

import tempfile
import time

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf
from common import arguments
from moxing.tensorflow.executor.evaluation.evaluator import Evaluator
from moxing.tensorflow.executor.loop.runner import Runner

SAMPLES, BATCH = 640, 32
EVALUATIONS = 3

_, rounds = arguments()
seconds = {Evaluator: [], Runner: []}
calls = []


def timed(kind):
    """Record the duration of every call of `kind.run`."""
    run = kind.run

    def run_timed(*words):
        began = time.perf_counter()
        result = run(*words)
        seconds[kind].append(time.perf_counter() - began)
        return result

    kind.run = run_timed


timed(Evaluator)
timed(Runner)


def input_fn(mode):
    data = tf.data.Dataset.range(SAMPLES).map(lambda i: (tf.random_uniform([64, 64, 3]), i % 10))
    return (data.repeat() if mode == mox.ModeKeys.TRAIN else data).make_one_shot_iterator().get_next()


def model_fn(inputs, mode):
    calls.append(mode)
    images, labels = inputs
    logits, _ = mox.get_model_fn("resnet_v1_18", run_mode=mode, num_classes=10)(images)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
    metrics = {"loss": loss, "accuracy": accuracy}
    hook = mox.LogEvaluationMetricHook(metrics, BATCH, samples_in_train=BATCH * 4, samples_in_eval=SAMPLES)
    return mox.ModelSpec(loss=loss, log_info=metrics, hooks=[hook])


with tempfile.TemporaryDirectory() as log_dir:
    for round_ in range(1, rounds + 1):
        calls.clear()
        for times in seconds.values():
            times.clear()
        mox.run(
            input_fn=input_fn,
            model_fn=model_fn,
            optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.01),
            run_mode=mox.ModeKeys.TRAIN,
            inter_mode=mox.ModeKeys.EVAL,
            batch_size=BATCH,
            max_number_of_steps=4 * EVALUATIONS * round_,
            log_dir=log_dir,
        )
        inside, built = sum(seconds[Evaluator]), len(calls)
        seconds[Runner].clear()
        for _ in range(EVALUATIONS):
            mox.run(
                input_fn=input_fn,
                model_fn=model_fn,
                run_mode=mox.ModeKeys.EVAL,
                batch_size=BATCH,
                max_number_of_steps=SAMPLES,
                checkpoint_path=log_dir,
            )
        print(f"@{inside / EVALUATIONS} {sum(seconds[Runner]) / EVALUATIONS}", flush=True)
print(f"@@{built}", flush=True)
