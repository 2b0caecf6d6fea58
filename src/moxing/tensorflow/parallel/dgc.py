"""`distributed_replicated_dgc`: as `collective`, but of its gradients a worker sends only the largest values.

What it does not send it keeps, until that is large enough: see `moxing.tensorflow.optimizer.compression`. What goes
around the ring are places and values; every worker adds up those of all, in the same order, and applies the sum. So all
stay equal. What a worker keeps is in its own memory and in no checkpoint: a training that goes on from one begins with
nothing kept, as at its first step.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.cluster.ring import Results, Ring
from moxing.tensorflow.optimizer.batch_gradients import BatchGradientsOptimizer
from moxing.tensorflow.optimizer.compression import Compressor, Settings, settings
from moxing.tensorflow.optimizer.dgc import DgcOptimizer, without_momentum
from moxing.tensorflow.optimizer.wrapper import OptimizerWrapper
from moxing.tensorflow.parallel.collective import Collective
from moxing.tensorflow.parallel.gradients import GradientPairs, clipped
from moxing.tensorflow.parallel.optimizers import made
from moxing.tensorflow.parallel.strategy import Tower

_NAME = "--variable_update=distributed_replicated_dgc"

#: Type of the places on the wire.
_PLACES = np.dtype(np.uint32)


class Dgc(Collective):
    """Variables on every worker, the largest values of the gradients added up around a ring. Arguments: `Collective`.

    The momentum of `tf.train.MomentumOptimizer` is taken over, and the optimizer does plain gradient descent.
    `--gradient_clip` is applied to the gradients of every worker before they are added to what it keeps, with the
    bound divided by the square root of the number of workers.
    """

    clips_mean = False
    always_by_ring = True

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        if FLAGS.get("loss_scale") == "dynamic":
            raise FlagError(
                f"--loss_scale=dynamic with {_NAME}: gradients that are not finite would stay in what the workers "
                "keep; give a number."
            )
        counts = [tower.weight if tower.samples is None else tower.samples for tower in towers]
        known = [tf.cast(count, tf.int64) for count in counts if count is not None]
        with self.local():
            # A guess from this worker's own batch: the sparsity need not be the same on all workers.
            self._samples = tf.add_n(known) * self.workers if known else tf.zeros([], tf.int64)
            self._step = global_step.read_value()
        self._settings: list[Settings] = []
        functions = [functools.partial(self._plain, function) for function in optimizer_fns]
        return super().train_op(towers, functions, before, global_step)

    def _plain(self, optimizer_fn: Callable[..., Any]) -> Any:
        """The optimizer without its momentum; notes the settings, with the momentum in them."""
        optimizer = made(optimizer_fn)
        wanted = settings()
        if isinstance(optimizer, DgcOptimizer):
            wanted, optimizer = optimizer.settings, optimizer.wrapped
        plain, momentum, nesterov = without_momentum(optimizer)
        if wanted.momentum is not None:
            if momentum not in (0.0, wanted.momentum):
                tf.logging.warning("%s takes momentum %g, not %g.", _NAME, wanted.momentum, momentum)
            momentum = wanted.momentum
        if wanted.nesterov is not None:
            nesterov = wanted.nesterov
        if momentum:
            _check_inside(plain)
        self._settings.append(dataclasses.replace(wanted, momentum=momentum, nesterov=nesterov))
        return plain

    def _summed(self, groups: Sequence[GradientPairs]) -> list[GradientPairs]:
        if self._ring is None:
            raise RuntimeError(
                f"{_NAME} needs connections between the workers on ports of its own, and only those of "
                "--worker_hosts are open: open them, or use --variable_update=collective."
            )
        exchange = Exchange(self._ring)
        taken, types = [], []
        for group, how in zip(groups, self._settings, strict=True):
            for gradient, variable in clipped(group, 1 / math.sqrt(self.workers)):
                # Sums need digits that half precision does not have.
                tensor = tf.convert_to_tensor(gradient)
                wide = tf.cast(tensor, tf.float32) if tensor.dtype.size < 4 else tensor
                take = exchange.add(variable.shape.num_elements(), np.dtype(wide.dtype.as_numpy_dtype), how)
                with self.local():
                    # At once, while the backward pass still computes the others.
                    taken.append(tf.numpy_function(take, [wide, self._step, self._samples], tf.int64))
                types.append(wide.dtype)
        with self.local(), tf.control_dependencies(self._last_sum):
            sums = tf.numpy_function(exchange.trade, [tf.add_n(taken)], types)
        self._last_sum = [sums[0].op]
        found = iter(sums)
        return [
            [
                (tf.cast(tf.reshape(next(found), variable.shape), variable.dtype.base_dtype), variable)
                for _, variable in group
            ]
            for group in groups
        ]


def _check_inside(optimizer: Any) -> None:
    """Raises where an optimizer cannot have its momentum in the compression."""
    while isinstance(optimizer, OptimizerWrapper):
        if isinstance(optimizer, BatchGradientsOptimizer):
            raise ValueError(
                f"batch_gradients with {_NAME}: momentum would count every batch and not every update; use an "
                "optimizer without momentum, and leave --dgc_momentum out."
            )
        optimizer = optimizer.wrapped
    if type(optimizer) is not tf.train.GradientDescentOptimizer:
        raise ValueError(
            f"{type(optimizer).__name__} with {_NAME} and --dgc_momentum: expected "
            "tf.train.GradientDescentOptimizer or tf.train.MomentumOptimizer; others go without --dgc_momentum."
        )


class Exchange:
    """What a worker sends of all its gradients in a step, and the sums that come of it.

    Args:
      ring: connects the workers.

    Attributes:
      sent: bytes that the last step gave to the ring: whole variables, places and values.

    Example:
      >>> class Alone:
      ...     def add(self, values): return values
      ...     def gather(self, values): return [values]
      >>> exchange = Exchange(Alone())
      >>> take = exchange.add(4, np.dtype('float32'), settings(sparsity_strategy='0.75', min_size_in_kb=0))
      >>> taken = take(np.array([1, 3, 2, -8], np.float32), step=0, samples=1)
      >>> exchange.trade(taken)[0].tolist()
      [0.0, 0.0, 0.0, -8.0]
    """

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._sizes: list[int] = []
        self._types: list[np.dtype] = []
        self._whole: list[bool] = []
        self._chosen: list[Any] = []
        self._results = Results()
        self.sent = 0

    def add(self, size: int, dtype: np.dtype, how: Settings) -> Callable[..., np.int64]:
        """One more variable; returns a function of gradient, step and samples that compresses its gradient."""
        place = len(self._sizes)
        self._sizes.append(size)
        self._types.append(dtype)
        self._whole.append(size * dtype.itemsize < how.min_bytes)
        self._chosen.append(None)
        compressor = Compressor(size, dtype, how.momentum or 0.0, bool(how.nesterov), how.masking)
        largest = 0

        def take(gradient: np.ndarray, step: int, samples: int) -> np.int64:
            nonlocal largest
            largest = max(largest, int(samples))  # the last batch of an epoch is shorter
            if self._whole[place]:
                self._chosen[place] = compressor.whole(gradient)
                return np.int64(size)
            chosen, values = compressor.select(gradient, how.sparsity(int(step), largest))
            self._chosen[place] = (chosen, values)
            return np.int64(values.size)

        return take

    def trade(self, taken: np.int64) -> list[np.ndarray]:
        """Sends what was taken of all variables, and adds up what all workers sent: a flat array for every variable."""
        del taken  # orders the calls
        sums: list[np.ndarray | None] = [None] * len(self._sizes)
        self.sent = 0
        for dtype in sorted({self._types[place] for place in self._places(True)}, key=str):
            places = [place for place in self._places(True) if self._types[place] == dtype]
            together = np.concatenate([self._chosen[place] for place in places])
            self.sent += together.nbytes
            total = self._ring.add(together)
            ends = np.cumsum([self._sizes[place] for place in places])
            for place, part in zip(places, np.split(total, ends[:-1]), strict=True):
                sums[place] = part.copy()
        sparse = self._places(False)
        if sparse:
            message = self._message(sparse)
            self.sent += message.nbytes
            messages = self._ring.gather(message)
            for place in sparse:
                sums[place] = zeros = self._results.array(self._sizes[place], self._types[place])
                zeros.fill(0)
            for each in messages:  # by worker: all add up in the same order
                self._add_message(each, sparse, sums)
        return sums  # type: ignore[return-value]

    def _places(self, whole: bool) -> list[int]:
        return [place for place, each in enumerate(self._whole) if each is whole]

    def _message(self, sparse: Sequence[int]) -> np.ndarray:
        """For every variable how many, then all places and values, as bytes."""
        counts = np.array([self._chosen[place][1].size for place in sparse], _PLACES)
        parts = [counts, *(part for place in sparse for part in self._chosen[place])]
        return np.concatenate([part.view(np.uint8) for part in parts])

    def _add_message(self, message: np.ndarray, sparse: Sequence[int], sums: Sequence[Any]) -> None:
        data, start = message.data, len(sparse) * _PLACES.itemsize
        counts = np.frombuffer(data, _PLACES, len(sparse))
        for place, count in zip(sparse, counts.tolist(), strict=True):
            chosen = np.frombuffer(data, _PLACES, count, start)
            start += chosen.nbytes
            values = np.frombuffer(data, self._types[place], count, start)
            start += values.nbytes
            # No place comes twice in the message of one worker.
            sums[place][chosen] += values
