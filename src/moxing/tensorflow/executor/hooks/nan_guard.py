"""Reacts to NaN and infinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.number_checks import is_number
from moxing.tensorflow.executor.actions.action import Action, NotFiniteError
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.hooks.run_hook import RunHook

_ACTIONS = ("stop", "restore")
#: The key of the hook's state in a checkpoint.
_KEY = "NanGuardHook"


class NanGuardHook(RunHook):
    """Checks tensors besides the losses for NaN and infinity, and can go back to the last checkpoint.

    Without the hook, the run ends with an error when a loss is NaN or infinite, or when a variable is and a checkpoint
    is due. With `action='restore'` it restores the last checkpoint instead and multiplies the learning rate by
    `factor`. The position in the data stays: the same batches do not come again.

    Args:
      tensors: floating-point tensors of `model_fn` to check, by name or as a list.
      action: `stop` ends the run with an error that names the tensor; `restore` restores the last checkpoint.
      factor: the factor of the learning rate, applied every time.
      max_restores: how often to go back, in all runs of a `log_dir` together, before the run ends with the error.

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

    def action(self, run: RunContext) -> NanGuardAction:
        if sum(isinstance(hook, NanGuardHook) for hook in run.step.model.hooks) > 1:
            raise ValueError(
                "ModelSpec(hooks=[...]) has several mox.NanGuardHook: use one, and pass all tensors to it."
            )
        if not self._restores:
            return NanGuardAction(run, most=0, factor=1.0)
        if run.step.strategy.num_workers > 1:
            raise NotImplementedError(
                "NanGuardHook(action='restore'): in a cluster all workers would have to restore together, which is not "
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


class NanGuardAction(Action):
    """Goes back to the last checkpoint when a value is not finite.

    Args:
      run: the run.
      most: how often, in all runs of a `log_dir` together; 0 for never.
      factor: what the learning rate is multiplied with every time.
    """

    def __init__(self, run: RunContext, most: int, factor: float) -> None:
        self._run, self._most, self._factor = run, most, factor
        self._restores = int(run.position.hooks.get(_KEY, {}).get("restores", 0))
        if most:
            self._ready = run.step.strategy.sync_ops()
            self._assign: tf.Operation | None = None
            if run.step.guard_factor is not None:
                self._product = tf.placeholder(tf.float32, [], name="moxing/guard_product")
                self._assign = run.step.guard_factor.assign(self._product).op
            self._scale()

    def state(self) -> Mapping[str, Any]:
        return {_KEY: {"restores": self._restores}}

    def recover(self, error: NotFiniteError) -> bool:
        keeper = self._run.keeper
        if not self._most or keeper is None or keeper.last is None:
            return False
        if self._restores >= self._most:
            tf.logging.error("NanGuardHook has restored %d times, max_restores: the run ends.", self._restores)
            return False
        self._restores += 1
        tf.logging.warning(
            "%s NanGuardHook restores %s (%d of %d).", error.what, keeper.last, self._restores, self._most
        )
        # Saved at once: the count must survive a run that ends before its next checkpoint.
        keeper.update_state(_KEY, self.state()[_KEY])
        keeper.restore(self._run.session)
        self._run.session.run(self._ready)
        self._scale()
        return True

    def _scale(self) -> None:
        if self._assign is None:
            return
        if self._restores:
            tf.logging.info(
                "NanGuardHook restored %d times: the learning rate is now %g times that of the optimizer.",
                self._restores,
                self._factor**self._restores,
            )
        self._run.session.run(self._assign, {self._product: self._factor**self._restores})
