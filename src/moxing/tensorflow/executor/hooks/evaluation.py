"""What all hooks share that evaluate inside training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import tensorflow.compat.v1 as tf

from moxing.framework.util.numbers_given import is_number
from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.arguments import ChecksArguments
from moxing.tensorflow.executor.hooks.gain import MODES


class Control(Protocol):
    """What a hook can do to the run after an evaluation."""

    def stop(self, why: str) -> None:
        """Ends the training after this step."""

    def scale_learning_rate(self, factor: float) -> None:
        """From now on the learning rate is what the optimizer's schedule says, times `factor`."""

    def keep_best(self, directory: str = "best", most: int = 1) -> None:
        """Writes a checkpoint of now to a directory in `log_dir`, where the last `most` of them stay."""

    def restore_best(self) -> None:
        """Loads the variables that `keep_best` wrote last to its own directory."""


class EvaluationHook(ChecksArguments, AggregativeSessionRunHook):
    """A hook that runs the model of `inter_mode` every so many epochs, and prints the means of its metrics.

    An epoch is `ceil(samples_in_train / batch_size)` steps, and the evaluation comes after its last step. In between,
    the steps run as fast as without the hook.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each the mean over a batch.
      batch_size: how many samples a training step takes, on all towers and workers that go in step together.
      samples_in_train: how many samples an epoch has.
      samples_in_eval: how many samples an evaluation takes, from the start of the data; None: all.
      evaluate_every_n_epochs: the period.
      prefix: begins the line.
      input_fn: gives the data of this hook's evaluations, tensors as those of `mox.run`'s `input_fn`, which gives them
        otherwise. It is called in the same mode.
    """

    #: True where the hook calls `Control.scale_learning_rate`.
    scales_learning_rate = False
    #: True where the hook calls `Control.keep_best`.
    keeps_best = False

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
        #: Samples that a training step takes, as the user says.
        self.batch_size = self._count("batch_size", batch_size)
        self._count("samples_in_train", samples_in_train)
        if samples_in_eval is not None:
            self._count("samples_in_eval", samples_in_eval)
        if not is_number(evaluate_every_n_epochs) or evaluate_every_n_epochs <= 0:
            raise ValueError(self._wrong("evaluate_every_n_epochs", evaluate_every_n_epochs, "a number above 0"))
        if input_fn is not None and not callable(input_fn):
            raise ValueError(self._wrong("input_fn", input_fn, "a function of the mode, as mox.run's input_fn"))
        self.samples_in_eval, self.input_fn = samples_in_eval, input_fn
        #: Steps from one evaluation to the next.
        self.period = max(1, math.ceil(math.ceil(samples_in_train / batch_size) * evaluate_every_n_epochs))
        self.prefix = prefix

    def support_aggregation(self) -> bool:
        return True

    def support_sync_workers(self) -> bool:
        return True

    def run_inter_mode(self) -> bool:
        return True

    def evaluated(self, step: int, values: Mapping[str, float], control: Control) -> None:
        """Called after each evaluation: prints the line, then decides.

        Args:
          step: number of the last training step, from 0.
          values: the means of `monitor_info`.
          control: what can be done to the run.
        """
        fields = " ".join(f"{name}: {value:.3f}" for name, value in values.items())
        tf.logging.info("%s step: %d %s", self.prefix, step, fields)
        self.decide(values, control)

    def decide(self, values: Mapping[str, float], control: Control) -> None:
        """What follows from the metrics; here nothing."""

    def resume(self, control: Control) -> None:
        """Called when the state of an earlier run is loaded, before the first step."""

    def finish(self, control: Control) -> None:
        """Called after the last step, unless a signal ended the run."""

    def state(self) -> dict[str, Any]:
        """What a later run must know, as JSON."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `state` said in an earlier run."""

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
