"""`mox.run`: alone, with towers, or as one process of a cluster, depending on the flags.

Its log lines, every ten steps, give the times. A hook that sees every step would force one `session.run` per step.
"""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

from __future__ import annotations

import logging
import re
import time

import moxing.tensorflow as mox
import numpy as np
import tensorflow.compat.v1 as tf
from common import CLASSES, DENSE, LEARNING_RATE, SIDE, TOGETHER, bytes_on_wire, report, task

#: Shape of a sample, by model.
SHAPES = {
    "dense": DENSE[:1],
    "mobilenet_v1_025": (SIDE, SIDE, 3),
    "softmax": (784,),
    "lenet": (28, 28, 1),
    "resnet_v1_20": (32, 32, 3),
}
NETS = ("mobilenet_v1_025", "lenet", "resnet_v1_20")

wanted = task()
parameters: list[int] = []


class Clock(logging.Handler):
    """Records time and bytes at the first log line after the warm-up and at every later one."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[int, float, int]] = []

    def emit(self, record: logging.LogRecord) -> None:
        match = re.match(r"step: (\d+)\(", record.getMessage())
        if match is None:
            return
        step = int(match.group(1))
        if step % TOGETHER == 0 and wanted.warm_up <= step <= wanted.warm_up + wanted.steps:
            self.notes.append((step, time.perf_counter(), bytes_on_wire()))


def input_fn(mode: str) -> tuple[tf.Tensor, tf.Tensor]:
    random = np.random.RandomState(0)
    count = 8 * wanted.batch
    samples = random.uniform(-1, 1, (count, *SHAPES[wanted.model])).astype(np.float32)
    labels = random.randint(0, CLASSES if wanted.model in ("dense", "mobilenet_v1_025") else 10, count)
    data = tf.data.Dataset.from_tensor_slices((samples, labels.astype(np.int64))).repeat()
    return tf.data.make_one_shot_iterator(data).get_next()


def logits_of(samples: tf.Tensor, mode: str) -> tf.Tensor:
    if wanted.model in NETS:
        classes = CLASSES if wanted.model == "mobilenet_v1_025" else 10
        logits, _ = mox.get_model_fn(wanted.model, mode, classes)(samples)
        return logits
    depths = DENSE[1:] if wanted.model == "dense" else (10,)
    x = samples
    for number, depth in enumerate(depths):
        weights = tf.get_variable(f"weights_{number}", [x.shape[-1], depth])
        x = tf.matmul(x, weights) + tf.get_variable(f"biases_{number}", [depth], initializer=tf.zeros_initializer())
        if number < len(depths) - 1:
            x = tf.nn.relu(x)
    return x


def model_fn(inputs: list[tf.Tensor], mode: str) -> mox.ModelSpec:
    samples, labels = inputs
    logits = logits_of(samples, mode)
    parameters[:] = [sum(variable.shape.num_elements() for variable in tf.trainable_variables())]
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss})


def main() -> None:
    clock = Clock()
    logging.getLogger("tensorflow").addHandler(clock)
    # Without --sync_replicas the steps of all workers count towards the end of the run.
    counters = 1 if mox.get_flag("sync_replicas") else len((mox.get_flag("worker_hosts") or "").split(","))
    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("sgd", LEARNING_RATE),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=wanted.batch,
        log_every_n_steps=TOGETHER,
        max_number_of_steps=counters * (wanted.warm_up + wanted.steps + 1),
    )
    if len(clock.notes) < 2:
        raise SystemExit(f"{len(clock.notes)} log lines behind the warm-up: more --steps are needed")
    (first_step, started, sent), (last_step, ended, sent_at_last) = clock.notes[0], clock.notes[-1]
    report(last_step - first_step, ended - started, sent_at_last - sent, parameters[0])


if __name__ == "__main__":
    main()
