"""Deep gradient compression in NumPy: which values a worker sends, and what it accumulates of the others.

Lin, Han, Mao, Wang, Dally: Deep gradient compression, 2018. For every variable, with the worker's gradient g and the
momentum factor m, and with u and v, initially 0:

    vanilla:   u = m u + g,    v = v + u
    nesterov:  u = m (u + g),  v = v + u + g
    sent:      v where |v| is among the largest;  v = 0 there, and with momentum factor masking u = 0 too

With sparsity 0 this is plain momentum: the values that the workers send add up to the velocity of their mean gradient,
which plain gradient descent applies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from moxing.framework.flags import FLAGS, FlagError
from moxing.framework.util.number_checks import is_integer, is_number

#: The warm-up of the paper, one epoch each; the last value is kept.
WARM_UP = (0.75, 0.9375, 0.984375, 0.996, 0.999)

_MIN_SIZE_IN_KB = 4
#: Values processed at a time, so that they fit into the processor's cache.
_BLOCK = 1 << 15
#: The threshold is estimated from a sample of this size, or from this fraction of the values if that is more.
_SAMPLE, _SAMPLED_PART = 1 << 16, 0.01
#: A sampled threshold may select this many times more values than wanted.
_TOO_MANY = 1.25


@dataclass(frozen=True)
class Settings:
    """How gradients are compressed.

    Attributes:
      sparsities: fraction of a gradient that is not sent, for every epoch; the last value is kept.
      momentum: momentum factor; None: that of the optimizer.
      nesterov: true for Nesterov momentum; None: as the optimizer has it.
      masking: true if the momentum of sent values is reset to 0.
      total_samples: samples in an epoch.
      min_bytes: smaller variables are not compressed.
    """

    sparsities: tuple[float, ...]
    momentum: float | None
    nesterov: bool | None
    masking: bool
    total_samples: int | None
    min_bytes: int

    def sparsity(self, step: int, samples: int) -> float:
        """Returns the sparsity of a step in which all workers together have `samples` samples.

        Example:
          >>> warm = settings(sparsity_strategy='0.75,0.9,0.999', total_samples=1000)
          >>> [warm.sparsity(step, samples=100) for step in (0, 9, 10, 20, 1000)]
          [0.75, 0.75, 0.9, 0.999, 0.999]
        """
        epoch = step * samples // self.total_samples if self.total_samples else len(self.sparsities)
        return self.sparsities[min(epoch, len(self.sparsities) - 1)]


def settings(
    sparsity_strategy: Any = None,
    momentum_type: Any = None,
    momentum: Any = None,
    momentum_factor_masking: Any = None,
    total_samples: Any = None,
    min_size_in_kb: Any = None,
) -> Settings:
    """Returns the settings from arguments, else from flags (`--dgc_momentum`, ..., `--min_size_in_kb`), else defaults.

    Example:
      >>> settings(momentum=0.9).sparsities
      (0.999,)
      >>> settings(momentum=1.5)
      Traceback (most recent call last):
      ValueError: dgc(momentum=1.5): expected a number from 0 to below 1.
    """

    def chosen(name: str, given: Any, flag: str) -> tuple[Any, str]:
        return (
            (given, f"dgc({name}={given!r})") if given is not None else (FLAGS.get(flag), f"--{flag}={FLAGS.get(flag)}")
        )

    samples, words = chosen("total_samples", total_samples, "dgc_total_samples")
    if samples is not None and not is_integer(samples, 1):
        raise _wrong(words, "expected the samples of an epoch, an integer from 1.")
    kilobytes, words = chosen("min_size_in_kb", min_size_in_kb, "min_size_in_kb")
    if kilobytes is not None and not is_integer(kilobytes, 0):
        raise _wrong(words, "expected an integer from 0.")
    factor, words = chosen("momentum", momentum, "dgc_momentum")
    if factor is not None and not (is_number(factor) and 0 <= factor < 1):
        raise _wrong(words, "expected a number from 0 to below 1.")
    kind, words = chosen("momentum_type", momentum_type, "dgc_momentum_type")
    if kind not in (None, "vanilla", "nesterov"):
        raise _wrong(words, "expected vanilla or nesterov.")
    masking, words = chosen("momentum_factor_masking", momentum_factor_masking, "dgc_momentum_factor_masking")
    if masking not in (None, True, False):
        raise _wrong(words, "expected True or False.")
    strategy, words = chosen("sparsity_strategy", sparsity_strategy, "dgc_sparsity_strategy")
    sparsities = _sparsities(strategy, words) if strategy is not None else WARM_UP if samples else WARM_UP[-1:]
    if len(sparsities) > 1 and samples is None:
        raise _wrong(words, "a sparsity for every epoch needs --dgc_total_samples, the samples of an epoch.")
    return Settings(
        sparsities,
        None if factor is None else float(factor),
        None if kind is None else kind == "nesterov",
        True if masking is None else bool(masking),
        None if samples is None else int(samples),
        1024 * int(_MIN_SIZE_IN_KB if kilobytes is None else kilobytes),
    )


def _sparsities(text: Any, words: str) -> tuple[float, ...]:
    found = []
    for piece in str(text).split(","):
        try:
            value = float(piece)
        except ValueError:
            value = math.nan
        if not 0 <= value < 1:
            raise _wrong(words, f"{piece.strip()!r} is not a sparsity; expected numbers in [0, 1), with commas.")
        found.append(value)
    return tuple(found)


def _wrong(words: str, message: str) -> ValueError:
    kind = FlagError if words.startswith("--") else ValueError
    return kind(f"{words}: {message}")


class Compressor:
    """Compresses the gradients of one variable on one worker. Its state is in no checkpoint.

    Args:
      size: number of elements of the variable.
      dtype: type of its gradients.
      momentum: the momentum factor.
      nesterov: true for Nesterov momentum.
      masking: true for momentum factor masking.

    Example:
      >>> worker = Compressor(4, np.dtype('float32'), momentum=0.5)
      >>> indices, values = worker.select(np.array([1, 3, 2, -8], np.float32), sparsity=0.75)
      >>> indices.tolist(), values.tolist()
      ([3], [-8.0])
      >>> indices, values = worker.select(np.zeros(4, np.float32), sparsity=0.75)  # 3, and half of it as momentum
      >>> indices.tolist(), values.tolist()
      ([1], [4.5])
    """

    def __init__(
        self, size: int, dtype: np.dtype, momentum: float = 0.0, nesterov: bool = False, masking: bool = True
    ) -> None:
        self._size, self._nesterov, self._masking = size, nesterov, masking
        self._momentum = dtype.type(momentum)
        self._velocity = np.zeros(size, dtype) if momentum else None
        self._accumulated: np.ndarray | None = None
        self._turn = 0

    def select(self, gradient: np.ndarray, sparsity: float) -> tuple[np.ndarray, np.ndarray]:
        """Adds a gradient and removes what is to be sent; returns its indices, in ascending order, and its values."""
        gradient = gradient.reshape(-1)
        if self._accumulated is None:
            self._accumulated = np.zeros(self._size, gradient.dtype)
        accumulated, velocity = self._accumulated, self._velocity
        threshold = self._threshold(gradient, sparsity)
        size: np.ndarray = np.empty(_BLOCK, gradient.dtype)
        small: np.ndarray = np.empty(_BLOCK, bool)
        indices: list[np.ndarray] = []
        for start in range(0, self._size, _BLOCK):
            block = slice(start, min(start + _BLOCK, self._size))
            count = block.stop - start
            self._add(accumulated[block], None if velocity is None else velocity[block], gradient[block])
            np.abs(accumulated[block], out=size[:count])
            # Not "at least the threshold": NaN must be sent, not accumulated.
            np.less(size[:count], threshold, out=small[:count])
            np.logical_not(small[:count], out=small[:count])
            found = np.flatnonzero(small[:count])
            if found.size:
                indices.append(found + start)
        chosen = np.concatenate(indices) if indices else np.empty(0, np.int64)
        most = self._count(self._size, sparsity)
        if chosen.size > _TOO_MANY * most:
            # The sample was not representative.
            sizes = np.abs(accumulated[chosen])
            chosen = np.sort(chosen[np.argpartition(sizes, chosen.size - most)[-most:]])
        values = accumulated[chosen]
        accumulated[chosen] = 0
        if self._masking and velocity is not None:
            velocity[chosen] = 0
        return chosen.astype(np.uint32), values

    def whole(self, gradient: np.ndarray) -> np.ndarray:
        """Returns what is sent of a gradient without compression."""
        gradient = gradient.reshape(-1)
        sent = np.zeros_like(gradient)
        self._add(sent, self._velocity, gradient)
        return sent

    def _add(self, kept: np.ndarray, velocity: np.ndarray | None, gradient: np.ndarray) -> None:
        """Adds a gradient to the arrays, in place."""
        if velocity is None:
            np.add(kept, gradient, out=kept)
            return
        if self._nesterov:
            np.add(velocity, gradient, out=velocity)
            np.multiply(velocity, self._momentum, out=velocity)
            np.add(kept, gradient, out=kept)
        else:
            np.multiply(velocity, self._momentum, out=velocity)
            np.add(velocity, gradient, out=velocity)
        np.add(kept, velocity, out=kept)

    def _threshold(self, gradient: np.ndarray, sparsity: float) -> Any:
        """Returns the threshold of |v|, estimated from a sample at different positions each time."""
        wanted = max(_SAMPLE, int(self._size * _SAMPLED_PART))
        stride = max(1, self._size // wanted)
        # A stride that divides the size would always sample the same few channels.
        while math.gcd(stride, self._size) > 1:
            stride -= 1
        self._turn = (self._turn + 1) % stride
        sampled = slice(self._turn, None, stride)
        sample = self._accumulated[sampled].copy()  # type: ignore[index]
        self._add(sample, None if self._velocity is None else self._velocity[sampled].copy(), gradient[sampled])
        np.abs(sample, out=sample)
        position = sample.size - self._count(sample.size, sparsity)
        sample.partition(position)
        # Zeros are never sent.
        return np.maximum(sample[position], np.finfo(sample.dtype).tiny)

    @staticmethod
    def _count(size: int, sparsity: float) -> int:
        return min(size, max(1, round(size * (1 - sparsity))))
