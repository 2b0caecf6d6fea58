"""Shared by the programs: their sizes, their data, the figures that they print."""

from __future__ import annotations

import json
import resource
import time
from typing import NamedTuple

import numpy as np


class Work(NamedTuple):
    """A model and its training.

    Attributes:
      batch: samples in a batch.
      samples: samples in the file.
      shape: the shape of a sample.
      dtype: the type of its numbers in the file.
      classes: labels are less than that.
      log_every: steps between two log lines.
    """

    batch: int
    samples: int
    shape: tuple[int, ...]
    dtype: type
    classes: int
    log_every: int

    @property
    def sample_bytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


VOCABULARY = 30522
WORKS = {
    "softmax": Work(100, 12000, (784,), np.uint8, 10, 100),
    "resnet20": Work(32, 2000, (32, 32, 3), np.uint8, 10, 10),
    "bert_tiny": Work(32, 2000, (64,), np.uint16, 2, 10),
}


def write_records(name: str, path: str) -> None:
    """Write random samples in the format of CIFAR-10: a byte with the label, then the numbers."""
    work = WORKS[name]
    random = np.random.RandomState(0)
    highest = VOCABULARY if work.dtype is np.uint16 else 256
    with open(path, "wb") as file:
        for label in random.randint(0, work.classes, work.samples):
            values = random.randint(0, highest, work.shape).astype(work.dtype)
            file.write(bytes([label]) + values.tobytes())


def dataset(tf, name: str, path: str):
    """Return the batches of a file, read once and kept in memory."""
    work = WORKS[name]

    def decode(record):
        label = tf.io.decode_raw(tf.strings.substr(record, 0, 1), tf.uint8)[0]
        values = tf.io.decode_raw(tf.strings.substr(record, 1, work.sample_bytes), tf.as_dtype(work.dtype))
        values = tf.reshape(values, work.shape)
        values = tf.cast(values, tf.int32) if work.dtype is np.uint16 else tf.cast(values, tf.float32) / 255
        return values, tf.cast(label, tf.int32)

    data = tf.data.FixedLengthRecordDataset(path, 1 + work.sample_bytes).map(decode).cache()
    return data.shuffle(work.samples).repeat().batch(work.batch, drop_remainder=True).prefetch(2)


class Moment(NamedTuple):
    """A point in time: of the clock, and of the CPU time of all threads of this process."""

    clock: float
    cpu: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.perf_counter(), time.process_time())


class Timed(NamedTuple):
    """Two points in time, and the steps between them."""

    begin: Moment
    end: Moment
    steps: int = 1

    def per_step(self) -> Moment:
        clock, cpu = ((end - begin) / self.steps for begin, end in zip(self.begin, self.end, strict=True))
        return Moment(clock, cpu)


def report(first: Timed, steady: Timed, parameters: int) -> None:
    """Print the figures: seconds to the first step and per step, peak memory in MB, trained parameters."""
    figures = {"parameters": parameters, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    for name, timed in (("first", first), ("step", steady)):
        figures[name], figures[f"{name}_cpu"] = timed.per_step()
    print("@" + json.dumps(figures), flush=True)
