"""Lowers the learning rate on a plateau, and stops the training when that no longer helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moxing.framework.util.number_checks import is_number
from moxing.tensorflow.executor.hooks.early_stopping import EarlyStoppingHook
from moxing.tensorflow.executor.hooks.evaluation import Control
from moxing.tensorflow.executor.hooks.gain import Best, higher_is_better


class PlateauLREarlyStoppingHook(EarlyStoppingHook):
    """Multiplies the learning rate by `decay_rate` on a plateau; stops the training when decays no longer help.

    A plateau is `patience` evaluations in a row without an improvement of more than `min_delta`. Then the best value
    since the last decay is compared with the best value before it: after `decay_patience` decays in a row that improved
    it by at most `decay_min_delta`, the next plateau ends the training. The learning rate is that of the optimizer's
    schedule times a factor, which is saved with the checkpoints; its summary is `learning_rate_factor`.

    Needs `mox.run(inter_mode=mox.ModeKeys.EVAL)`.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each a mean over a batch.
      monitor: the name of the metric to monitor.
      batch_size: number of samples in a training step.
      samples_in_train: number of samples in an epoch.
      samples_in_eval: number of samples to evaluate, from the start of the data; None for all.
      evaluate_every_n_epochs: epochs between two evaluations.
      min_delta: a change of at most this much is no improvement.
      patience: number of evaluations in a row without improvement that make a plateau.
      decay_min_delta: a decay must improve the metric by more than this.
      decay_patience: number of decays in a row without that improvement that end the training.
      decay_rate: the factor of a decay.
      mode: `max`, `min`, or `auto`: `max` for names like accuracy, auc, precision or recall, else `min`.
      prefix: start of the log line.
      restore_best: keep the best variables in `log_dir/best` and restore them at the end of the training.
      input_fn: reads the data to evaluate, instead of the `input_fn` of `mox.run`; see `EvaluationHook`.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> with tf.Graph().as_default():
      ...     hook = PlateauLREarlyStoppingHook({'loss': tf.constant(1.0)}, 'loss', batch_size=10, samples_in_train=95)
      >>> hook.period
      10
    """

    scales_learning_rate = True

    def __init__(
        self,
        monitor_info: Mapping[str, Any],
        monitor: str,
        batch_size: int,
        samples_in_train: int,
        samples_in_eval: int | None = None,
        evaluate_every_n_epochs: float = 1,
        min_delta: float = 0.001,
        patience: int = 8,
        decay_min_delta: float = 0.001,
        decay_patience: int = 1,
        decay_rate: float = 0.1,
        mode: str = "auto",
        prefix: str = "[PlateauLREarlyStopping]",
        restore_best: bool = False,
        input_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(
            monitor_info, monitor, batch_size, samples_in_train, samples_in_eval, evaluate_every_n_epochs, min_delta,
            patience, prefix, mode, restore_best, input_fn,
        )  # fmt: skip
        self._check_monitor(monitor, mode, {"decay_min_delta": decay_min_delta})
        self._count("decay_patience", decay_patience, least=0)
        if not is_number(decay_rate) or not 0 < decay_rate < 1:
            raise ValueError(self._wrong("decay_rate", decay_rate, "a number between 0 and 1"))
        self._decay_rate, self._decay_patience = float(decay_rate), int(decay_patience)
        #: The best values of the rates, one for each.
        self._levels = Best(higher_is_better(monitor, mode), decay_min_delta)
        self._factor = 1.0
        self._stopped = False

    def decide(self, values: Mapping[str, float], control: Control) -> None:
        if self._best.see(values[self._monitor]):
            if self.keeps_best:
                control.keep_best()
            return
        if self._best.waited < max(self._patience, 1):
            return
        best = self._best.value
        self._levels.see(float("nan") if best is None else best)
        # The first plateau only says what the first rate came to: Best counts it as a gain.
        if self._levels.waited >= max(self._decay_patience, 1) or self._decay_patience == 0:
            self._stopped = True
            self.finish(control)
            control.stop(f"{self._monitor} is on a plateau, and the last decay of the learning rate did not help")
            return
        self._factor *= self._decay_rate
        self._best.waited = 0
        control.scale_learning_rate(self._factor)

    def resume(self, control: Control) -> None:
        if self._factor != 1.0:
            control.scale_learning_rate(self._factor)
        if self._stopped:
            self._restored = True
            control.stop(f"{self._monitor} was on a plateau when the last run ended")

    def state(self) -> dict[str, Any]:
        return {**super().state(), "levels": self._levels.state(), "factor": self._factor, "stopped": self._stopped}

    def load_state(self, state: Mapping[str, Any]) -> None:
        super().load_state(state)
        self._levels.load_state(state["levels"])
        self._factor, self._stopped = float(state["factor"]), bool(state["stopped"])
