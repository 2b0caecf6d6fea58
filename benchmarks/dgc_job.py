"""One worker of `dgc.py`. First argument: the number of timed steps, which follow as many warm-up steps."""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

from __future__ import annotations

import logging
import re
import sys
import time

import moxing.tensorflow as mox
import numpy as np
import tensorflow.compat.v1 as tf

#: Features of a sample and units of the dense layers: 25.1 million parameters.
DENSE = (1024, 4096, 4096, 1000)
BATCH = 4


class Clock(logging.Handler):
    """Records when steps were logged."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        match = re.match(r"step: (\d+)\(", record.getMessage())
        if match:
            self.times[int(match.group(1))] = time.perf_counter()


def input_fn(mode: str) -> tuple[tf.Tensor, tf.Tensor]:
    random = np.random.RandomState(0)
    samples = random.uniform(-1, 1, (8 * BATCH, DENSE[0])).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((samples, random.randint(0, DENSE[-1], 8 * BATCH))).repeat()
    return tf.data.make_one_shot_iterator(data).get_next()


def model_fn(inputs: list[tf.Tensor], mode: str) -> mox.ModelSpec:
    x, labels = inputs
    for number, depth in enumerate(DENSE[1:]):
        weights = tf.get_variable(f"weights_{number}", [x.shape[-1], depth])
        x = tf.matmul(x, weights) + tf.get_variable(f"biases_{number}", [depth], initializer=tf.zeros_initializer())
        if number < len(DENSE) - 2:
            x = tf.nn.relu(x)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss})


def main() -> None:
    steps = int(sys.argv[1])
    clock = Clock()
    logging.getLogger("tensorflow").addHandler(clock)
    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("momentum", 0.01),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=BATCH,
        log_every_n_steps=steps,
        max_number_of_steps=2 * steps + 1,
    )
    print(f"@{steps / (clock.times[2 * steps] - clock.times[steps])}", flush=True)


if __name__ == "__main__":
    main()
