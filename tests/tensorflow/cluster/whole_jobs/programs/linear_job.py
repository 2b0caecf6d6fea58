"""A training whose weights NumPy can tell: a line through three features, with momentum and weight decay.

As a program it is one process of a job. What it trains is told by the JSON text in the environment variable JOB, where
it runs by the flags of the command line, as in any script. Its last line is RESULT and a JSON text.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np

BATCH, LEARNING_RATE, MOMENTUM, DECAY = 7, 0.02, 0.9, 0.01


@dataclass(frozen=True)
class Training:
    """What is trained.

    Attributes:
      samples: in an epoch.
      epochs: how many; -1: without end.
      steps: max_number_of_steps.
      log_dir: of checkpoints.
      every: log_every_n_steps.
      save: save_model_steps; 0: only at the start and the end.
      delay: seconds that every sample takes to arrive.
      stop_at: a hook of one worker asks to stop after so many of its steps...
      stop_on: ... on this worker.
      together: asynchronous workers wait for each other after their first step.
      runs: how often mox.run trains, each to `steps` more.
      evaluate: an EVAL follows.
      shuffle: in the order of a shuffle.
      seen: `output_fn` tells which samples the worker was given.
      shard: `rank`: the script shards by ops_adapter.rank() and size(), `Dataset`: by Dataset.shard itself.
      spread: the weights are large enough to be spread over all ps.
      firewall: worker 1 can reach the ports of --worker_hosts and no others.
    """

    samples: int = 57
    epochs: int = 1
    steps: int = 1_000_000
    log_dir: str | None = None
    every: int = 0
    save: int = 0
    delay: float = 0.0
    stop_at: int = 0
    stop_on: int = 0
    together: bool = False
    runs: int = 1
    evaluate: bool = False
    shuffle: bool = False
    seen: bool = False
    shard: str = ""
    spread: bool = False
    firewall: bool = False

    def text(self) -> str:
        return json.dumps(asdict(self))


def data(samples: int) -> tuple[np.ndarray, np.ndarray]:
    features = np.random.RandomState(0).rand(samples, 3).astype(np.float32)
    return features, (features @ np.array([1.0, -2.0, 3.0], np.float32) + 0.5).astype(np.float32)


@dataclass
class Reference:
    """The same mathematics in NumPy, in double precision.

    Attributes:
      weights: of the three features.
      bias: of the line.
      step: steps done.
      losses: for every step the loss that each worker prints, None where it had no sample.
    """

    weights: np.ndarray
    bias: float
    step: int
    losses: list[list[float | None]]


def reference(samples: int, epochs: int, *parts: tuple[int | None, int, int]) -> Reference:
    """Trains.

    Args:
      samples: in an epoch.
      epochs: how many.
      *parts: the trainings that go on from each other: steps (None: to the end of the data), workers, towers.
    """
    features, labels = (np.tile(part.astype(np.float64), (epochs,) + (1,) * (part.ndim - 1)) for part in data(samples))
    weights, bias = np.zeros(3), 0.0
    speed, bias_speed = np.zeros(3), 0.0
    place, step, losses = 0, 0, []
    for count, workers, towers in parts:
        together = BATCH * workers * towers
        done = 0
        while place < len(features) and (count is None or done < count):
            x, y = features[place : place + together], labels[place : place + together]
            error = x @ weights + bias - y
            decay = DECAY * (weights @ weights) / 2
            own = [error[worker::workers][:BATCH] for worker in range(workers)]
            losses.append([float((part**2).mean() + decay) if len(part) else None for part in own])
            speed = MOMENTUM * speed + 2 * x.T @ error / len(x) + DECAY * weights
            bias_speed = MOMENTUM * bias_speed + 2 * error.mean()
            weights, bias = weights - LEARNING_RATE * speed, bias - LEARNING_RATE * bias_speed
            place, step, done = place + together, step + 1, done + 1
    return Reference(weights, bias, step, losses)


def main() -> None:
    """One process of the job."""
    import moxing.tensorflow as mox

    # isort: split
    import tensorflow.compat.v1 as tf
    from meeting import FirstStepsTogether

    from moxing.tensorflow.cluster import ring
    from moxing.tensorflow.parallel import parameter_server

    tf.logging.set_verbosity(tf.logging.INFO)
    training = Training(**json.loads(os.environ["JOB"]))
    features, labels = data(training.samples)
    seen: list[int] = []
    if training.spread:
        parameter_server._LARGE_BYTES = 12
    if training.firewall and mox.get_flag("task_index") == 1:

        def closed(*address):
            raise ConnectionRefusedError

        ring.connect = closed

    def input_fn(mode):
        numbers = np.arange(training.samples)
        dataset = tf.data.Dataset.from_tensor_slices((numbers, features, labels))
        if training.shard == "rank":
            from moxing.tensorflow.executor import ops_adapter

            own = numbers % ops_adapter.size() == ops_adapter.rank()
            dataset = tf.data.Dataset.from_tensor_slices((numbers[own], features[own], labels[own]))
        if training.shard == "Dataset":
            dataset = dataset.shard(2, mox.get_flag("task_index"))
        if training.shuffle:
            dataset = dataset.shuffle(training.samples)
        dataset = dataset.repeat(training.epochs if mode == mox.ModeKeys.TRAIN else 1)
        if training.delay:

            def late(number, *others):
                def wait(value):
                    time.sleep(training.delay)
                    return value

                (number,) = tf.py_func(wait, [number], [tf.int64])
                number.set_shape([])
                return (number, *others)

            dataset = dataset.map(late)
        return tf.data.make_one_shot_iterator(dataset).get_next()

    class Stops(tf.train.SessionRunHook):
        def __init__(self):
            self._steps = 0

        def after_run(self, context, values):
            self._steps += 1
            if self._steps == training.stop_at:
                context.request_stop()

    def model_fn(inputs, mode):
        number, x, y = inputs
        weights = tf.get_variable(
            "w", [3, 1], initializer=tf.zeros_initializer(), regularizer=lambda v: DECAY * tf.nn.l2_loss(v)
        )
        bias = tf.Variable(0.0, name="b")
        error = tf.squeeze(tf.matmul(x, weights), 1) + bias - y
        loss = tf.reduce_mean(tf.square(error)) + tf.add_n(tf.losses.get_regularization_losses())
        stops = training.stop_at and mox.get_flag("task_index") == training.stop_on
        return mox.ModelSpec(
            loss=loss,
            log_info={"loss": loss},
            output_info={"number": number} if training.seen else None,
            hooks=[Stops()] * bool(stops) + [FirstStepsTogether()] * training.together,
        )

    def output_fn(outputs):
        seen.extend(int(number) for output in outputs for number in np.ravel(output["number"]))

    results = []
    modes = [mox.ModeKeys.TRAIN] * training.runs + [mox.ModeKeys.EVAL] * training.evaluate
    for run, mode in enumerate(modes):
        result = mox.run(
            input_fn=input_fn,
            model_fn=model_fn,
            optimizer_fn=lambda: tf.train.MomentumOptimizer(LEARNING_RATE, MOMENTUM),
            output_fn=output_fn if training.seen else None,
            output_every_n_steps=1 if training.seen else 0,
            run_mode=mode,
            batch_size=BATCH,
            log_dir=training.log_dir if mode == mox.ModeKeys.TRAIN else None,
            checkpoint_path=None if mode == mox.ModeKeys.TRAIN else training.log_dir,
            max_number_of_steps=training.steps * (run + 1) if mode == mox.ModeKeys.TRAIN else sys.maxsize,
            log_every_n_steps=training.every,
            save_model_steps=training.save or None,
        )
        results.append(
            {
                "mode": mode if isinstance(mode, str) else mode.value,
                "global_step": int(result.global_step),
                "samples": int(result.samples or 0),
                "log_info": {name: float(value) for name, value in (result.log_info or {}).items()},
                "checkpoint": result.checkpoint_path,
            }
        )
    print("RESULT", json.dumps({"runs": results, "seen": seen}), flush=True)


if __name__ == "__main__":
    main()
