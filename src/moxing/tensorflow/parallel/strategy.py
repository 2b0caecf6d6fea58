"""What every strategy can do: one strategy a file, chosen by `--variable_update` and by where the run takes place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.surroundings import told, weighs
from moxing.tensorflow.parallel.devices import logical_cpus
from moxing.tensorflow.parallel.gradients import GradientPairs, gradients_of, in_scopes, trainable_variables
from moxing.tensorflow.parallel.loss_scale import LossScale
from moxing.tf1.towers import Copy, Instead, Towers

#: Why all workers stop together: a hook of one of them asked for it, or one of them was sent a signal.
HOOK, SIGNAL = 1, 2


@dataclass(frozen=True)
class Tower:
    """What training needs of one tower.

    Attributes:
      losses: its losses.
      var_scopes: for every loss the scopes that it trains, or None for all variables.
      weight: how many samples its gradients are the mean of; None: as many as those of every other tower.
      samples: how many samples its batch has, also where the weight does not say so.
    """

    losses: Sequence[tf.Tensor]
    var_scopes: Sequence[Sequence[str] | None]
    weight: tf.Tensor | None = None
    samples: tf.Tensor | None = None

    def gradients(
        self,
        optimizers: Sequence[Any],
        variables: Sequence[tf.Variable],
        scale: LossScale,
        spread: bool = True,
        share: Any = 1.0,
        copies_of: Callable[[list[tf.Variable]], list[tf.Variable]] = list,
    ) -> list[GradientPairs]:
        """For every loss its gradients, see `gradients_of`; `copies_of` gives what the tower has of the first one's."""
        return [
            gradients_of(optimizer, loss, copies_of(in_scopes(variables, scopes)), scale, spread, share)
            for optimizer, loss, scopes in zip(optimizers, self.losses, self.var_scopes, strict=True)
        ]


class Strategy:
    """Where variables live, and how the gradients of the towers become updates.

    Args:
      devices: where the towers of this process stand.
      copy: makes the variables of the towers behind the first; None: they share those of the first.

    Attributes:
      workers: how many processes share the data.
      index: which of them this is. The first is the chief, which alone writes.
      in_step: all workers do every step together.
      halt: not 0 after a step when this was the last one, for `HOOK` or `SIGNAL`; None where each worker decides for
        itself.
      next_steps: after a step how many the next `session.run` does on all workers; None where each may do as many as it
        likes.
      reached: not 0 after a step when `global_step` is at `max_steps`; None where no other worker brings it there.
      max_steps: where `global_step` is to end.
      optimizers: those that this process applies gradients with.
      applied: for every loss the gradients that this process applies, before they are clipped.
      flush: run once when the data has ended: it applies what the optimizers have gathered and not applied yet.
      batch_size: samples of a whole batch, where they are known.
    """

    workers = 1
    index = 0
    in_step = False
    halt: tf.Tensor | None = None
    next_steps: tf.Tensor | None = None
    reached: tf.Tensor | None = None
    max_steps = 2**63 - 1
    optimizers: Sequence[Any] = ()
    applied: Sequence[GradientPairs] = ()
    flush: tf.Operation | None = None
    batch_size: int | None = None

    def __init__(self, devices: Sequence[str], copy: Copy | None = None) -> None:
        self.devices = list(devices)
        self._towers = Towers(copy)

    @property
    def towers(self) -> int:
        """How many towers this process builds."""
        return len(self.devices)

    @property
    def is_chief(self) -> bool:
        """True for the one process that restores, saves and exports."""
        return self.index == 0

    @property
    def owns_variables(self) -> bool:
        """True where this process gives the variables their first values."""
        return True

    def scope(self) -> AbstractContextManager[None]:
        """Inside, everything of the run is built."""
        return _nothing()

    def local(self) -> AbstractContextManager[None]:
        """Inside, also variables stand in this process."""
        return _nothing()

    @contextmanager
    def tower(self, index: int) -> Iterator[None]:
        """Inside, `model_fn` builds tower `index`; the towers are built in their order."""
        with tf.device(self.place(index)), self._towers.build(index):
            yield

    @contextmanager
    def beside(self, scope: str, instead: Instead) -> Iterator[list[tf.Variable]]:
        """Inside, `model_fn` builds the model in another mode, on the variables; see `Towers.build_beside`."""
        with tf.device(self.place(0)), self._towers.build_beside(scope, instead) as own:
            yield own

    def place(self, index: int) -> Callable[[tf.Operation], str]:
        """A device function for the operations of tower `index`, and the variables that they use."""
        raise NotImplementedError

    def gradients_of_towers(
        self, towers: Sequence[Tower], optimizers: Sequence[Any], scale: LossScale, shares: Sequence[Any], spread: bool
    ) -> list[list[GradientPairs]]:
        """For every tower and loss the gradients, multiplied by the tower's share; see `Tower.gradients`."""
        variables = trainable_variables()
        gradients = []
        for index, (tower, share) in enumerate(zip(towers, shares, strict=True)):
            with tf.device(self.place(index)):
                gradients.append(tower.gradients(optimizers, variables, scale, spread, share, self.trained_for))
        return gradients

    def trained_for(self, variables: Sequence[tf.Variable]) -> list[tf.Variable]:
        """The variables that towers compute with, for those that are saved."""
        return list(variables)

    @staticmethod
    def samples(towers: Sequence[Tower], optimizers: Sequence[Any]) -> tf.Tensor | None:
        """How many samples the towers have together; None where it is always the same, or nobody asks."""
        counts = [tower.weight if tower.samples is None else tower.samples for tower in towers]
        if not weighs(optimizers) or any(count is None for count in counts):
            return None
        if all(tf.get_static_value(count) is not None for count in counts):
            return None
        return tf.add_n([tf.cast(count, tf.float64) for count in counts])

    def counted(self, samples: tf.Tensor | None, workers: int = 1) -> AbstractContextManager[None]:
        """Inside, optimizers are told how much the step counts that they apply.

        Args:
          samples: those of the step; None: as many as those of every other.
          workers: how many workers they are of.
        """
        if samples is None:
            return told(weight=None)
        return told(weight=tf.cast(samples, tf.float64) / float((self.batch_size or 1) * self.towers * workers))

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        """One step: all gradients, then all updates, then `global_step` once.

        Args:
          towers: what `model_fn` returned for each of them.
          optimizer_fns: for every loss a function that returns its optimizer.
          before: operations that come before the updates: the arrival of the batches, batch-norm moving averages.
          global_step: the step counter.
        """
        raise NotImplementedError

    def ready(self) -> list[tf.Operation]:
        """Operations to be run when the variables have their values, before the first step."""
        return []

    def own_values(self) -> list[tf.Operation]:
        """Operations that every worker runs when the chief's variables are ready, before its first step."""
        return []

    def request_stop(self, session: tf.Session, why: int) -> None:
        """Asks all workers to stop together; `halt` tells when.

        Args:
          session: the run's.
          why: what `halt` will be.
        """

    def propose(self, session: tf.Session, steps: int) -> None:
        """The chief says what `next_steps` is to be."""

    def configure(self, config: tf.ConfigProto) -> None:
        """Adds to the session's settings what the strategy needs: here as many logical CPUs as towers stand on."""
        logical_cpus(config, self.devices)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
