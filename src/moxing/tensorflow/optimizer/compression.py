"""Deep gradient compression in NumPy: what a worker keeps of its gradients, and the few values that it sends.

Lin, Han, Mao, Wang, Dally: Deep gradient compression, 2018. For every variable, with the worker's gradient g and the
momentum factor m, and with u, v, which begin with 0:

    vanilla:   u = m u + g,    v = v + u
    nesterov:  u = m (u + g),  v = v + u + g
    sent:      v where |v| is among the largest;  v = 0 there, and with momentum factor masking u = 0 too

Without anything left out this is momentum as it is: what the workers send adds up to the velocity of their mean
gradient, and goes into plain gradient descent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from moxing.framework.flags import FLAGS, FlagError
from moxing.framework.util.numbers_given import is_integer, is_number

#: The warm-up of the paper, an epoch each; the last one stays.
WARM_UP = (0.75, 0.9375, 0.984375, 0.996, 0.999)

_MIN_SIZE_IN_KB = 4
#: Numbers that are worked on at a time: they stay in the processor's cache.
_BLOCK = 1 << 15
#: The threshold comes from about so many numbers, or from this part of them if that is more.
_SAMPLE, _SAMPLED_PART = 1 << 16, 0.01
#: How many times too many values a sampled threshold may let through.
_TOO_MANY = 1.25


@dataclass(frozen=True)
class Settings:
    """How gradients are compressed.

    Attributes:
      sparsities: what part of a gradient is left out, for every epoch; the last one stays.
      momentum: its factor; None: as the optimizer's.
      nesterov: its kind; None: as the optimizer's.
      masking: what was sent has no momentum any more.
      total_samples: samples in an epoch.
      min_bytes: a smaller variable is sent whole.
    """

    sparsities: tuple[float, ...]
    momentum: float | None
    nesterov: bool | None
    masking: bool
    total_samples: int | None
    min_bytes: int

    def sparsity(self, step: int, samples: int) -> float:
        """The sparsity of a step, where all workers together have so many samples in each.

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
    """The settings by arguments, else by flags (`--dgc_momentum`, ..., `--min_size_in_kb`), else the usual ones.

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
            raise _wrong(words, f"{piece.strip()!r} is no sparsity; expected numbers from 0 to below 1, with commas.")
        found.append(value)
    return tuple(found)


def _wrong(words: str, message: str) -> ValueError:
    kind = FlagError if words.startswith("--") else ValueError
    return kind(f"{words}: {message}")


class Compressor:
    """What one worker keeps of the gradients of one variable. It is in no checkpoint.

    Args:
      size: how many numbers the variable has.
      dtype: of its gradients.
      momentum: the momentum factor.
      nesterov: of Nesterov's kind.
      masking: momentum factor masking.

    Example:
      >>> worker = Compressor(4, np.dtype('float32'), momentum=0.5)
      >>> places, values = worker.select(np.array([1, 3, 2, -8], np.float32), sparsity=0.75)
      >>> places.tolist(), values.tolist()
      ([3], [-8.0])
      >>> places, values = worker.select(np.zeros(4, np.float32), sparsity=0.75)  # 3, and half of it as momentum
      >>> places.tolist(), values.tolist()
      ([1], [4.5])
    """

    def __init__(
        self, size: int, dtype: np.dtype, momentum: float = 0.0, nesterov: bool = False, masking: bool = True
    ) -> None:
        self._size, self._nesterov, self._masking = size, nesterov, masking
        self._momentum = dtype.type(momentum)
        self._velocity = np.zeros(size, dtype) if momentum else None
        self._kept: np.ndarray | None = None
        self._turn = 0

    def select(self, gradient: np.ndarray, sparsity: float) -> tuple[np.ndarray, np.ndarray]:
        """Adds a gradient, and takes out what is to be sent: its places, which rise, and the values there."""
        gradient = gradient.reshape(-1)
        if self._kept is None:
            self._kept = np.zeros(self._size, gradient.dtype)
        kept, velocity = self._kept, self._velocity
        threshold = self._threshold(gradient, sparsity)
        size: np.ndarray = np.empty(_BLOCK, gradient.dtype)
        small: np.ndarray = np.empty(_BLOCK, bool)
        places: list[np.ndarray] = []
        for start in range(0, self._size, _BLOCK):
            block = slice(start, min(start + _BLOCK, self._size))
            count = block.stop - start
            self._add(kept[block], None if velocity is None else velocity[block], gradient[block])
            np.abs(kept[block], out=size[:count])
            # Not "at least": what is not a number must not stay here unseen.
            np.less(size[:count], threshold, out=small[:count])
            np.logical_not(small[:count], out=small[:count])
            found = np.flatnonzero(small[:count])
            if found.size:
                places.append(found + start)
        chosen = np.concatenate(places) if places else np.empty(0, np.int64)
        most = self._count(self._size, sparsity)
        if chosen.size > _TOO_MANY * most:
            # The sample was not like the rest.
            sizes = np.abs(kept[chosen])
            chosen = np.sort(chosen[np.argpartition(sizes, chosen.size - most)[-most:]])
        values = kept[chosen]
        kept[chosen] = 0
        if self._masking and velocity is not None:
            velocity[chosen] = 0
        return chosen.astype(np.uint32), values

    def whole(self, gradient: np.ndarray) -> np.ndarray:
        """What is sent of a gradient of which nothing is left out."""
        gradient = gradient.reshape(-1)
        sent = np.zeros_like(gradient)
        self._add(sent, self._velocity, gradient)
        return sent

    def _add(self, kept: np.ndarray, velocity: np.ndarray | None, gradient: np.ndarray) -> None:
        """One step of the arrays, in place."""
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
        """What |v| is to reach: the same part of a sample does, each time of other places."""
        wanted = max(_SAMPLE, int(self._size * _SAMPLED_PART))
        stride = max(1, self._size // wanted)
        # A stride that divides the size would look at the same few channels for ever.
        while math.gcd(stride, self._size) > 1:
            stride -= 1
        self._turn = (self._turn + 1) % stride
        sampled = slice(self._turn, None, stride)
        kept = self._kept[sampled].copy()  # type: ignore[index]
        self._add(kept, None if self._velocity is None else self._velocity[sampled].copy(), gradient[sampled])
        np.abs(kept, out=kept)
        place = kept.size - self._count(kept.size, sparsity)
        kept.partition(place)
        # Zeros are never worth sending.
        return np.maximum(kept[place], np.finfo(kept.dtype).tiny)

    @staticmethod
    def _count(size: int, sparsity: float) -> int:
        return min(size, max(1, round(size * (1 - sparsity))))
