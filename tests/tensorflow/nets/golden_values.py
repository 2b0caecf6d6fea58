"""Weights that follow from a variable's name alone: the same network gets the same numbers, however it is written."""

import json
import zlib
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))


def golden(name: str) -> dict:
    """The reference of a network: image_size, channels, num_classes, variables, trainable, end_points, logits."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def value_of(name: str, shape: list[int]) -> np.ndarray:
    """The value of the variable called `name`: noise from the checksum of the name, in a scale that fits its kind."""
    noise = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode()))).standard_normal(shape)
    kind = name.rsplit("/", 1)[-1]
    if kind == "moving_variance":
        value = 1 + 0.1 * np.abs(noise)
    elif kind == "gamma":
        value = 1 + 0.1 * noise
    elif kind in ("beta", "biases", "bias", "moving_mean"):
        value = 0.1 * noise
    else:
        fan_in = shape[0] * shape[1] if kind == "depthwise_weights" else int(np.prod(shape[:-1])) if shape[1:] else 1
        value = noise * np.sqrt(2.0 / fan_in)
    return value.astype(np.float32)


def image_of(size: int, channels: int = 3, batch: int = 1) -> np.ndarray:
    """Images, uniform in [-1, 1]."""
    pixels = np.random.Generator(np.random.PCG64(2026)).uniform(-1, 1, (batch, size, size, channels))
    return pixels.astype(np.float32)


def assign_values(session: tf.Session) -> None:
    """Gives every variable of the session's graph its value."""
    # In one call: each call with something new in the graph has TensorFlow optimise all of it again.
    values = {
        tf.placeholder(variable.dtype.base_dtype, variable.shape): (variable, value_of(variable.op.name, shape))
        for variable, shape in ((variable, variable.shape.as_list()) for variable in tf.global_variables())
    }
    assigned = [variable.assign(fed, read_value=False) for fed, (variable, _) in values.items()]
    session.run(tf.group(*assigned), {fed: value for fed, (_, value) in values.items()})
