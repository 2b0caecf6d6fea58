"""What the tests of TFRecord datasets share: files of records, damage to them, and runs that tell what they saw."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from PIL import Image

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.base_dataset import BaseDataset


def example(features: dict[str, Any]) -> bytes:
    """A serialised `tf.train.Example`; the kind of a value follows from its type."""
    made = {key: _feature(value if isinstance(value, list) else [value]) for key, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def _feature(values: list[Any]) -> tf.train.Feature:
    if all(isinstance(value, bytes) for value in values):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if all(isinstance(value, int) for value in values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def write(path: Path, records: Sequence[bytes]) -> list[int]:
    """Writes a file; returns where its records begin."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    # A record has 12 bytes before its data and 4 after it.
    return np.cumsum([0, *(len(record) + 16 for record in records)])[:-1].tolist()


def write_numbers(directory: Path, counts: Sequence[int], **more: Any) -> list[int]:
    """Files part-0, part-1, ... of records with the key `id`, numbered throughout; returns the numbers."""
    first = 0
    for part, count in enumerate(counts):
        numbers = range(first, first + count)
        write(directory / f"part-{part}.tfrecord", [example({"id": number, **more}) for number in numbers])
        first += count
    return list(range(first))


def flip_byte(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def noise(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def encode(image: np.ndarray, kind: str = "png") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(stream, kind)
    return stream.getvalue()


def slim_example(image: np.ndarray, label: int, kind: str = "png", **more: Any) -> bytes:
    """A record as TF-Slim's conversion scripts write it; `more` has further keys, with `_` for `/`."""
    return example(
        {
            "image/encoded": encode(image, "jpeg" if kind == "jpg" else kind),
            "image/format": kind.encode(),
            "image/class/label": label,
            "image/height": image.shape[0],
            "image/width": image.shape[1],
            **{key.replace("_", "/"): value for key, value in more.items()},
        }
    )


def rows(dataset: BaseDataset, names: Sequence[str], limit: int | None = None) -> list[tuple[Any, ...]]:
    """The elements of a dataset to its end, or `limit` of them, in the graph it was made in."""
    tensors = dataset.get(names)
    with tf.Session() as session:
        return list(until_end(lambda: session.run(tuple(tensors)), limit))


def until_end(step: Callable[[], Any], limit: int | None = None) -> Iterator[Any]:
    taken = 0
    while limit is None or taken < limit:
        try:
            yield step()
        except tf.errors.OutOfRangeError:
            return
        taken += 1


def column(dataset: BaseDataset, name: str, limit: int | None = None) -> list[Any]:
    """One feature, as Python values."""
    return [value.tolist() if hasattr(value, "tolist") else value for (value,) in rows(dataset, [name], limit)]


def run_seeing(
    input_fn: Callable[..., Any], steps: int = 1000, mode: str = "TRAIN", batch_size: int | None = 1, **arguments: Any
) -> tuple[mox.RunResult, list[Any]]:
    """`mox.run` with a model that does next to nothing; returns its result and what the first input was, by step."""
    seen: list[Any] = []

    def model_fn(inputs, mode, **kwargs):
        weight = tf.get_variable("w", shape=[], initializer=tf.zeros_initializer())
        return mox.ModelSpec(loss=weight, log_info={"w": weight}, output_info={"seen": inputs[0]})

    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=(lambda: tf.train.GradientDescentOptimizer(1.0)) if mode == "TRAIN" else None,
        output_fn=lambda outputs: seen.extend(output["seen"].tolist() for output in outputs),
        output_every_n_steps=1,
        run_mode=mode,
        batch_size=batch_size,
        max_number_of_steps=steps,
        **arguments,
    )
    return result, seen


def listed_bad_samples(log_dir: Path) -> list[dict[str, Any]]:
    """The lines of `bad_samples.jsonl`."""
    return [json.loads(line) for line in (log_dir / "bad_samples.jsonl").read_text().splitlines()]


@contextmanager
def warnings_logged() -> Iterator[list[str]]:
    """The warnings that TensorFlow's logger was given."""
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
