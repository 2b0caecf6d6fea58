"""The base class of hooks that evaluate inside training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import tensorflow.compat.v1 as tf

from moxing.framework.util.number_checks import is_number
from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.arguments import ChecksArguments
from moxing.tensorflow.executor.hooks.gain import MODES

#: The directory in `log_dir` of the best variables.
BEST = "best"


class Control(Protocol):
    """What a hook can do to the run after an evaluation."""

    def stop(self, why: str) -> None:
        """Ends the training after this step.

        Args:
          why: the reason, for the log.
        """

    def scale_learning_rate(self, factor: float) -> None:
        """From now on multiplies the learning rate of the optimizer's schedule by `factor`."""

    def keep_best(self, directory: str = BEST, most: int = 1) -> None:
        """Writes a checkpoint to a directory in `log_dir`, which keeps the last `most` of them."""

    def restore_best(self) -> None:
        """At the end of the training, restores the variables that `keep_best` wrote last."""


class EvaluationHook(ChecksArguments, AggregativeSessionRunHook):
    """A hook that runs the model in `inter_mode` every n epochs and logs the means of its metrics.

    An epoch is `ceil(samples_in_train / batch_size)` steps; the evaluation follows its last step. Between evaluations,
    the steps run as fast as without the hook.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each a mean over a batch.
      batch_size: number of samples in a training step, over all towers and synchronous workers.
      samples_in_train: number of samples in an epoch.
      samples_in_eval: number of samples to evaluate, from the start of the data; None for all.
      evaluate_every_n_epochs: epochs between two evaluations.
      prefix: start of the log line.
      input_fn: reads the data of this hook's evaluations; by default the `input_fn` of `mox.run`. It is called in
        `inter_mode` and returns tensors of the same kind.
    """

    #: True where the hook calls `Control.scale_learning_rate`.
    scales_learning_rate = False
    #: True where the hook calls `Control.keep_best`.
    keeps_best = False
    #: The directory in `log_dir` that the hook keeps the best variables in.
    directory = BEST
    #: False where no other hook may keep its best variables in `directory`.
    shares_directory = True

    def __init__(
        self,
        monitor_info: Mapping[str, Any],
        batch_size: int,
        samples_in_train: int,
        samples_in_eval: int | None = None,
        evaluate_every_n_epochs: float = 1,
        prefix: str = "[VALIDATION METRICS]",
        input_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(monitor_info, Mapping) or not monitor_info:
            raise ValueError(self._wrong("monitor_info", monitor_info, "a dict of scalar tensors by name"))
        self.monitor_info = {str(name): self._scalar(name, value) for name, value in monitor_info.items()}
        #: Samples in a training step, according to the user.
        self.batch_size = self._count("batch_size", batch_size)
        self._count("samples_in_train", samples_in_train)
        if samples_in_eval is not None:
            self._count("samples_in_eval", samples_in_eval)
        if not is_number(evaluate_every_n_epochs) or evaluate_every_n_epochs <= 0:
            raise ValueError(self._wrong("evaluate_every_n_epochs", evaluate_every_n_epochs, "a number above 0"))
        if input_fn is not None and not callable(input_fn):
            raise ValueError(self._wrong("input_fn", input_fn, "a function of the mode, as mox.run's input_fn"))
        self.samples_in_eval, self.input_fn = samples_in_eval, input_fn
        #: Steps between two evaluations.
        self.period = max(1, math.ceil(math.ceil(samples_in_train / batch_size) * evaluate_every_n_epochs))
        self.prefix = prefix

    def support_aggregation(self) -> bool:
        return True

    def support_sync_workers(self) -> bool:
        return True

    def run_inter_mode(self) -> bool:
        return True

    def evaluated(self, step: int, values: Mapping[str, float], control: Control) -> None:
        """Called after each evaluation: logs the metrics, then decides.

        Args:
          step: number of the last training step, from 0.
          values: the means of `monitor_info`.
          control: what can be done to the run.
        """
        fields = " ".join(f"{name}: {value:.3f}" for name, value in values.items())
        tf.logging.info("%s step: %d %s", self.prefix, step, fields)
        self.decide(values, control)

    def decide(self, values: Mapping[str, float], control: Control) -> None:
        """Reacts to the metrics. Override it; the default does nothing."""

    def resume(self, control: Control) -> None:
        """Called in a resumed run after `load_state`, before the first step."""

    def finish(self, control: Control) -> None:
        """Called after the last step, unless a signal ended the run."""

    def state(self) -> dict[str, Any]:
        """The state to save with a checkpoint, as JSON."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned in the run that is resumed."""

    def _scalar(self, name: Any, value: Any) -> tf.Tensor:
        try:
            tensor = tf.convert_to_tensor(value)
        except (TypeError, ValueError):
            raise TypeError(self._wrong(f"monitor_info[{name!r}]", value, "a scalar tensor")) from None
        if tensor.shape.rank is None:
            return tf.reshape(tensor, [])
        if tensor.shape.rank or tensor.dtype == tf.string:
            raise ValueError(
                self._wrong(f"monitor_info[{name!r}]", value, "a scalar; reduce it, for example with tf.reduce_mean")
            )
        return tensor

    def _check_monitor(self, monitor: Any, mode: Any, deltas: Mapping[str, Any]) -> None:
        if monitor not in self.monitor_info:
            raise ValueError(self._wrong("monitor", monitor, f"one of monitor_info, {sorted(self.monitor_info)}"))
        if mode not in MODES:
            raise ValueError(self._wrong("mode", mode, "'auto', 'min' or 'max'"))
        for argument, delta in deltas.items():
            if not is_number(delta) or delta < 0:
                raise ValueError(self._wrong(argument, delta, "a number from 0"))


def check_directories(hooks: Sequence[EvaluationHook]) -> None:
    """Raises an error if two hooks would overwrite each other's best checkpoints."""
    used = [hook.directory for hook in hooks if hook.keeps_best]
    for hook in hooks:
        if not hook.shares_directory and used.count(hook.directory) > 1:
            raise ValueError(
                f"mox.{type(hook).__name__}(directory={hook.directory!r}): another hook keeps its best checkpoint "
                "in the same directory; give each hook its own."
            )
