"""What to do when the training diverges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.numbers_given import is_number
from moxing.tensorflow.executor.hooks.action import NEVER
from moxing.tensorflow.executor.hooks.run_hook import RunHook, RunParts
from moxing.tensorflow.executor.hooks.save import NotFiniteError
from moxing.tensorflow.executor.loop import Progress

_ACTIONS = ("stop", "restore")


class NanGuardHook(RunHook):
    """Watches tensors beside the losses for NaN and infinity, and can go back to the last checkpoint.

    Without the hook a loss that is NaN or infinite ends the run with an error, and so do variables that are when a
    checkpoint is due. With `action='restore'` the run goes back to the last checkpoint instead, with the learning rate
    multiplied by `factor`. The data goes on where it is: the same batches do not come again.

    Args:
      tensors: what is watched beside the losses: floating-point tensors of `model_fn` by name, or a list of them.
      action: `stop`: the run ends with an error that names the tensor; `restore`: it goes back.
      factor: what the learning rate is multiplied with every time.
      max_restores: how often it goes back, in all runs of a `log_dir` together; after that it stops.

    Example:
      >>> with tf.Graph().as_default():
      ...     hook = NanGuardHook({'logits': tf.constant([1.0])}, action='restore', factor=0.1)
      >>> sorted(hook.guarded())
      ['logits']
    """

    def __init__(
        self,
        tensors: Mapping[str, Any] | Sequence[Any] = (),
        action: str = "stop",
        factor: float = 0.5,
        max_restores: int = 3,
    ) -> None:
        super().__init__()
        self._tensors = self._by_name(tensors)
        if action not in _ACTIONS:
            raise ValueError(self._wrong("action", action, "'stop' or 'restore'"))
        if not is_number(factor) or not 0 < factor <= 1:
            raise ValueError(self._wrong("factor", factor, "a number above 0, up to 1"))
        self._restores, self._factor = action == "restore", float(factor)
        self._most = self._count("max_restores", max_restores)
        self.scales_learning_rate = self._restores and factor != 1

    def guarded(self) -> dict[str, tf.Tensor]:
        return dict(self._tensors)

    def action(self, run: RunParts) -> NanGuardAction:
        if not self._restores:
            return NanGuardAction(run, most=0, factor=1.0)
        if run.step.strategy.workers > 1:
            raise NotImplementedError(
                "NanGuardHook(action='restore'): in a cluster the workers would have to go back together, which is not "
                "available in this version: use action='stop', and `moxing run --max_restarts`."
            )
        if run.keeper is None:
            raise ValueError("NanGuardHook(action='restore') needs mox.run(log_dir=...): the checkpoints are there.")
        return NanGuardAction(run, self._most, self._factor)

    def _by_name(self, tensors: Any) -> dict[str, tf.Tensor]:
        if isinstance(tensors, tf.Tensor):
            raise TypeError(self._wrong("tensors", tensors, "a dict of tensors by name, or a list"))
        named = (
            tensors if isinstance(tensors, Mapping) else {getattr(each, "name", str(each)): each for each in tensors}
        )
        found = {}
        for name, value in named.items():
            try:
                tensor = tf.convert_to_tensor(value)
            except (TypeError, ValueError):
                raise TypeError(self._wrong(f"tensors[{name!r}]", value, "a tensor")) from None
            if not tensor.dtype.is_floating:
                raise TypeError(self._wrong(f"tensors[{name!r}]", value, "floating-point numbers"))
            found[str(name)] = tensor
        return found


class NanGuardAction:
    """Goes back to the last checkpoint when it is told to.

    Args:
      run: the run.
      most: how often; 0: never.
      factor: of the learning rate, every time.

    Attributes:
      names: of the tensors that are watched.
    """

    key = "NanGuardHook"

    def __init__(self, run: RunParts, most: int, factor: float) -> None:
        self._run, self._most, self._factor = run, most, factor
        self.names = run.step.guarded
        self._restores = int(run.remembered.get(self.key, {}).get("restores", 0))
        if most:
            self._ready = run.step.strategy.ready()
            self._assign: tf.Operation | None = None
            if run.step.guard_factor is not None:
                self._product = tf.placeholder(tf.float32, [], name="moxing/guard_product")
                self._assign = run.step.guard_factor.assign(self._product).op
            self._scale()

    def steps_until(self, done: int) -> int:
        return NEVER

    def act(self, done: int, progress: Progress) -> None:
        """The steps themselves look at the tensors."""

    def finish(self, done: int, progress: Progress) -> None:
        """Nothing is left to do."""

    def state(self) -> dict[str, Any]:
        """What a later run must know."""
        return {"restores": self._restores}

    def restore(self, error: NotFiniteError) -> bool:
        """Goes back; False where the run is to end with the error."""
        keeper = self._run.keeper
        if not self._most or keeper is None or keeper.last is None:
            return False
        if self._restores >= self._most:
            tf.logging.error("NanGuardHook went back %d times, max_restores: now it stops.", self._restores)
            return False
        self._restores += 1
        tf.logging.warning(
            "%s NanGuardHook goes back to %s (%d of %d).", error.what, keeper.last, self._restores, self._most
        )
        # At once: a run that ends before its next checkpoint has gone back all the same.
        keeper.remember(self.key, self.state())
        keeper.restore(self._run.session)
        self._run.session.run(self._ready)
        self._scale()
        return True

    def _scale(self) -> None:
        if self._assign is not None:
            if self._restores:
                tf.logging.info(
                    "NanGuardHook went back %d times: the learning rate is now %g times that of the optimizer.",
                    self._restores,
                    self._factor**self._restores,
                )
            self._run.session.run(self._assign, {self._product: self._factor**self._restores})
