"""`Experiment`, `learn_runner` and export strategies, on `tf.estimator.train_and_evaluate`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

__all__ = ["Experiment", "InputFnOps", "build_parsing_serving_input_fn", "make_export_strategy", "run"]

# The modules of the original package; this one has what was in them.
_NAMES = dict.fromkeys(("input_fn_utils", "saved_model_export_utils"), f"{__name__}:")
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


class InputFnOps(NamedTuple):
    """What a serving input function returns."""

    features: Any
    labels: Any
    default_inputs: Any


def receiver_function(serving_input_fn: Callable[[], Any]) -> Callable[[], Any]:
    """Returns the serving function of `tf.estimator` for one that returns `InputFnOps`."""

    def receive() -> Any:
        made = serving_input_fn()
        if hasattr(made, "receiver_tensors"):
            return made
        features, _, inputs = made
        # A model function that is trained on a tensor shall get one here too.
        kind = "ServingInputReceiver" if isinstance(features, dict) else "TensorServingInputReceiver"
        return _lazy.resolve(f"moxing.tensorflow.estimator:export.{kind}")(features, inputs)

    return receive


def build_parsing_serving_input_fn(feature_spec: Any, default_batch_size: int | None = None) -> Any:
    """Returns a serving input function that parses `tf.train.Example` protocol buffers."""
    build = _lazy.resolve("moxing.tensorflow.estimator:export.build_parsing_serving_input_receiver_fn")
    return build(feature_spec, default_batch_size)


def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
) -> Any:
    """Returns an exporter for `Experiment(export_strategies=...)`, which writes into `export/Servo`.

    Raises:
      NotImplementedError: there is a default_output_alternative_key.
    """
    if default_output_alternative_key is not None:
        raise NotImplementedError(
            f"make_export_strategy(default_output_alternative_key={default_output_alternative_key!r}): the model is "
            "exported with all its export_outputs; leave it out."
        )
    exporter = _lazy.resolve("moxing.tensorflow.estimator:LatestExporter")
    return exporter("Servo", receiver_function(serving_input_fn), assets_extra, as_text, exports_to_keep)


class Experiment:
    """An estimator with the data to train and to evaluate it on.

    Args:
      estimator: of `tf.contrib.learn` or of `tf.estimator`.
      train_input_fn: returns the data to train on.
      eval_input_fn: returns the data to evaluate on.
      eval_metrics: further metrics; for estimators of `tf.contrib.learn`.
      train_steps: train up to this step.
      eval_steps: number of batches of an evaluation; None for all.
      train_monitors: hooks of the training.
      eval_hooks: hooks of the evaluation.
      eval_delay_secs: time before the first evaluation.
      continuous_eval_throttle_secs: least time between evaluations.
      min_eval_frequency: has no effect, with a warning: every new checkpoint is evaluated.
      export_strategies: what `make_export_strategy` returns, or a list of it.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[[], Any],
        eval_input_fn: Callable[[], Any],
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Sequence[Any] | None = None,
        eval_hooks: Sequence[Any] | None = None,
        eval_delay_secs: int = 120,
        continuous_eval_throttle_secs: int = 60,
        min_eval_frequency: int | None = None,
        export_strategies: Any = None,
    ) -> None:
        if min_eval_frequency is not None:
            tf.logging.warning(
                "Experiment(min_eval_frequency=%s) has no effect: RunConfig(save_checkpoints_steps=...) decides when "
                "to evaluate.",
                min_eval_frequency,
            )
        self.estimator = estimator
        self.train_input_fn, self.eval_input_fn = train_input_fn, eval_input_fn
        self.eval_metrics, self.eval_steps, self.train_steps = eval_metrics, eval_steps, train_steps
        self._monitors, self._eval_hooks = list(train_monitors or []), list(eval_hooks or [])
        self._delay, self._throttle = eval_delay_secs, continuous_eval_throttle_secs
        if export_strategies is None or hasattr(export_strategies, "export"):
            export_strategies = [export_strategies] if export_strategies is not None else []
        self._exporters = list(export_strategies)

    def train(self, delay_secs: Any = None) -> Any:
        """Trains up to `train_steps`."""
        del delay_secs
        return self.estimator.train(self.train_input_fn, hooks=self._monitors, max_steps=self.train_steps)

    def evaluate(self, delay_secs: Any = None, name: str | None = None) -> Any:
        """Evaluates the newest checkpoint."""
        del delay_secs
        more = {"metrics": self.eval_metrics} if self.eval_metrics else {}
        return self.estimator.evaluate(
            input_fn=self.eval_input_fn, steps=self.eval_steps, hooks=self._eval_hooks, name=name, **more
        )

    def train_and_evaluate(self) -> Any:
        """Trains, evaluates every new checkpoint and exports; returns the last metrics and exports."""
        api = _lazy.resolve("moxing.tensorflow.estimator:")
        estimator = getattr(self.estimator, "_estimator", self.estimator)
        train_fn, eval_fn = self.train_input_fn, self.eval_input_fn
        if estimator is not self.estimator:
            train_fn, eval_fn = self.estimator.input_of(train_fn), self.estimator.input_of(eval_fn)
            estimator = self.estimator.with_metrics(self.eval_metrics)
        for hook in self._monitors:
            if hasattr(hook, "set_estimator"):
                hook.set_estimator(self.estimator)
        return api.train_and_evaluate(
            estimator,
            api.TrainSpec(train_fn, self.train_steps, self._monitors),
            api.EvalSpec(
                eval_fn,
                self.eval_steps,
                hooks=self._eval_hooks,
                exporters=self._exporters,
                start_delay_secs=self._delay,
                throttle_secs=self._throttle,
            ),
        )

    def test(self) -> Any:
        """Trains one step and evaluates one batch."""
        self.estimator.train(self.train_input_fn, hooks=self._monitors, steps=1)
        return self.estimator.evaluate(input_fn=self.eval_input_fn, steps=1)


def run(
    experiment_fn: Callable[..., Any],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Makes an experiment and runs one of its methods, `train_and_evaluate` by default: `learn_runner.run`.

    Args:
      experiment_fn: takes output_dir, or run_config and hparams, and returns an `Experiment`.
      output_dir: the directory of the model.
      schedule: name of the method.
      run_config: a `RunConfig` with a model_dir.
      hparams: passed to experiment_fn.
    """
    if (output_dir is None) == (run_config is None):
        raise ValueError(f"learn_runner.run: expected output_dir or run_config, got {output_dir!r} and {run_config!r}.")
    if run_config is None:
        experiment = experiment_fn(output_dir)
    else:
        if not run_config.model_dir:
            raise ValueError("learn_runner.run: run_config has no model_dir.")
        takes_both = len(inspect.signature(experiment_fn).parameters) > 1
        experiment = experiment_fn(run_config, hparams) if takes_both else experiment_fn(run_config)
    method = getattr(experiment, schedule or "train_and_evaluate", None)
    if not callable(method):
        raise ValueError(f"schedule={schedule!r}: expected train, evaluate, train_and_evaluate or test.")
    return method()
