"""Lowering the learning rate where a metric does not get better, and ending the training where that does not help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moxing.framework.util.numbers_given import is_number
from moxing.tensorflow.executor.hooks.early_stopping import EarlyStoppingHook
from moxing.tensorflow.executor.hooks.evaluation import Control
from moxing.tensorflow.executor.hooks.gain import Best, higher_is_better


class PlateauLREarlyStoppingHook(EarlyStoppingHook):
    """Multiplies the learning rate by `decay_rate` on a plateau; stops where decays do not help.

    A plateau is `patience` evaluations in a row without a gain of more than `min_delta`. Then the best value of this
    rate is compared with the best one of the rates before: after `decay_patience` decays in a row that did not bring
    more than `decay_min_delta`, the next plateau ends the training. The rate is that of the optimizer's own schedule
    times a factor, which goes with the checkpoints; in the summaries it is `learning_rate_factor`.

    Needs `mox.run(inter_mode=mox.ModeKeys.EVAL)`.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each the mean over a batch.
      monitor: the name of the one that decides.
      batch_size: how many samples a training step takes.
      samples_in_train: how many samples an epoch has.
      samples_in_eval: how many samples an evaluation takes, from the start of the data; None: all.
      evaluate_every_n_epochs: the period.
      min_delta: what a gain must exceed.
      patience: how many evaluations in a row without a gain are a plateau.
      decay_min_delta: what a decay must bring.
      decay_patience: how many decays in a row without that end the training.
      decay_rate: the factor of a decay.
      mode: `max`, `min`, or `auto`: `max` for names such as accuracy, auc, precision, recall, else `min`.
      prefix: begins the line.
      restore_best: keep the best variables in `log_dir/best`, and end the training with them.
      input_fn: gives other data than `mox.run`'s `input_fn`, see `EvaluationHook`.

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
