"""`tf.contrib.learn.Estimator` and what belongs to it, on `tf.estimator.Estimator`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from moxing.tf1.contrib import _lazy
from moxing.tf1.contrib.learn import arrays
from moxing.tf1.contrib.learn.specs import MetricSpec, ModeKeys, ModelFnOps

__all__ = ["Estimator", "SKCompat"]

InputFn = Callable[[], Any]


class Estimator:
    """A model with the methods fit, evaluate and predict, for arrays and for input functions.

    Args:
      model_fn: returns `ModelFnOps` or (predictions, loss, train_op); takes features, labels and, if it names them,
        mode, params, config and model_dir.
      model_dir: the directory of the checkpoints.
      config: a `RunConfig`.
      params: passed to model_fn.
      feature_engineering_fn: changes (features, labels) before the model function sees them.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        if model_fn is None:
            raise ValueError("Estimator(model_fn=None): pass the function that builds the model.")
        made = _lazy.resolve("moxing.tensorflow.estimator:Estimator")(
            _adapted(model_fn, model_dir), model_dir, config, {} if params is None else {"params": params}
        )
        self._connect(made, feature_engineering_fn)

    def _connect(self, estimator: Any, feature_engineering_fn: Callable[..., Any] | None) -> None:
        self._estimator = estimator
        self._engineer = feature_engineering_fn

    @property
    def model_dir(self) -> str:
        """The directory of the checkpoints."""
        return self._estimator.model_dir

    @property
    def config(self) -> Any:
        """The run configuration."""
        return self._estimator.config

    @property
    def params(self) -> Any:
        """The parameters that model_fn gets."""
        return self._estimator.params.get("params", {})

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: InputFn | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Sequence[Any] | None = None,
        max_steps: int | None = None,
    ) -> Estimator:
        """Trains for `steps` more steps, or up to step `max_steps`."""
        hooks = list(monitors or [])
        for hook in hooks:
            if hasattr(hook, "set_estimator"):
                hook.set_estimator(self)
        feed = arrays.Feed(x, y, batch_size, epochs=None, shuffle=True)
        self._estimator.train(self._input(input_fn, feed), hooks=hooks, steps=steps, max_steps=max_steps)
        return self

    def train(
        self, input_fn: InputFn, hooks: Any = None, steps: int | None = None, max_steps: int | None = None
    ) -> Any:
        """Trains on the data of an input function, as `tf.estimator` does."""
        return self.fit(input_fn=input_fn, steps=steps, monitors=hooks, max_steps=max_steps)

    def partial_fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: InputFn | None = None,
        steps: int | None = 1,
        batch_size: int | None = None,
        monitors: Sequence[Any] | None = None,
    ) -> Estimator:
        """Trains for a few more steps."""
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: InputFn | None = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[Any, Any] | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Sequence[Any] | None = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Returns the loss and the metrics of the newest checkpoint, or of `checkpoint_path`.

        `log_progress` has no effect: `tf.estimator` always logs an evaluation.
        """
        del log_progress
        if feed_fn is not None:
            raise NotImplementedError("evaluate(feed_fn=...): pass the data as x and y, or as input_fn.")
        estimator = self.with_metrics(metrics)
        feed = arrays.Feed(x, y, batch_size, epochs=1, shuffle=False)
        return estimator.evaluate(self._input(input_fn, feed), steps, hooks, checkpoint_path, name)

    def predict(
        self,
        x: Any = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the predictions, one after the other or (`as_iterable=False`) as arrays."""
        found = self._predict(x, input_fn, batch_size, outputs)
        return found if as_iterable else _as_arrays(found)

    def _predict(self, x: Any, input_fn: InputFn | None, batch_size: int | None, outputs: Any) -> Iterator[Any]:
        feed = arrays.Feed(x, None, batch_size, epochs=1, shuffle=False)
        for one in self._estimator.predict(arrays.ending(self._input(input_fn, feed))):
            values = self._predictions(one)
            if outputs:
                yield {name: value for name, value in values.items() if name in outputs}
            else:
                yield values.get(_ONLY, values)

    def _predictions(self, predictions: Any) -> Any:
        return predictions

    def with_metrics(self, metrics: Mapping[Any, Any] | None) -> Any:
        """Returns the estimator of `tf.estimator`, with further metrics."""
        if not metrics:
            return self._estimator
        add = _lazy.resolve("moxing.tensorflow.estimator:add_metrics")
        return add(self._estimator, _metric_function(metrics, self._predictions))

    def input_of(self, input_fn: InputFn) -> InputFn:
        """Returns the input function of `tf.estimator` for an input function."""
        return self._input(input_fn, arrays.Feed(None, None, None, None, False))

    def _input(self, input_fn: InputFn | None, feed: arrays.Feed) -> InputFn:
        return arrays.input_function(input_fn, feed, self._engineer, self._features)

    def _features(self, features: Any) -> Any:
        return features

    def export_savedmodel(self, export_dir_base: str, serving_input_fn: Callable[[], Any], **options: Any) -> Any:
        """Exports the newest checkpoint as a SavedModel and returns its directory."""
        from moxing.tf1.contrib.learn import experiment

        allowed = {
            name: options.pop(name) for name in ("assets_extra", "as_text", "checkpoint_path") if name in options
        }
        if any(value is not None for value in options.values()):
            raise NotImplementedError(f"export_savedmodel({', '.join(options)}): only {sorted(allowed)} are available.")
        receiver = experiment.receiver_function(serving_input_fn)
        return self._estimator.export_saved_model(export_dir_base, receiver, **allowed)

    def get_variable_names(self) -> list[str]:
        """Returns the names of the variables in the newest checkpoint."""
        return self._estimator.get_variable_names()

    def get_variable_value(self, name: str) -> Any:
        """Returns a variable of the newest checkpoint."""
        return self._estimator.get_variable_value(name)


#: The name of predictions that are a single tensor.
_ONLY = "predictions_of_the_model_function"


def _adapted(model_fn: Callable[..., Any], model_dir: str | None) -> Callable[..., Any]:
    """Returns a model function of `tf.estimator` for one of `tf.contrib.learn`."""
    names = inspect.signature(model_fn).parameters

    def adapted(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        more = {"mode": mode, "params": params.get("params", {}), "config": config, "model_dir": model_dir}
        made = model_fn(features, labels, **{name: value for name, value in more.items() if name in names})
        ops = made if isinstance(made, ModelFnOps) or hasattr(made, "train_op") else ModelFnOps(mode, *made)
        if not isinstance(ops, ModelFnOps):
            return ops
        predictions = ops.predictions
        if predictions is not None and not isinstance(predictions, Mapping):
            predictions = {_ONLY: predictions}
        return _lazy.resolve("moxing.tensorflow.estimator:EstimatorSpec")(
            mode,
            predictions=predictions,
            loss=ops.loss,
            train_op=ops.train_op,
            eval_metric_ops=dict(ops.eval_metric_ops or {}),
            training_chief_hooks=ops.training_chief_hooks,
            training_hooks=ops.training_hooks,
            scaffold=ops.scaffold,
            export_outputs=_export_outputs(predictions) if mode == ModeKeys.INFER else None,
        )

    return adapted


def _export_outputs(predictions: Mapping[str, Any]) -> dict[str, Any]:
    return {"serving_default": _lazy.resolve("moxing.tensorflow.estimator:export.PredictOutput")(dict(predictions))}


def _metric_function(metrics: Mapping[Any, Any], predictions_of: Callable[[Any], Any]) -> Callable[..., Any]:
    def metric_fn(features: Any, labels: Any, predictions: Any) -> dict[str, Any]:
        values = predictions_of(predictions)
        values = values.get(_ONLY, values) if isinstance(values, Mapping) else values
        made = {}
        for key, metric in metrics.items():
            name, prediction = key if isinstance(key, tuple) else (key, None)
            spec = metric if isinstance(metric, MetricSpec) else MetricSpec(metric, prediction)
            made[name] = spec.create_metric_ops(features, labels, values)
        return made

    return metric_fn


def _as_arrays(found: Iterator[Any]) -> Any:
    rows = list(found)
    if rows and isinstance(rows[0], Mapping):
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return np.array(rows)


class SKCompat:
    """An estimator with the methods of scikit-learn, for arrays.

    Args:
      estimator: an `Estimator`.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Any = None,
    ) -> SKCompat:
        """Trains on arrays."""
        self._estimator.fit(x, y, steps=steps, batch_size=batch_size, monitors=monitors, max_steps=max_steps)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Returns the loss and the metrics."""
        return self._estimator.evaluate(x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name)

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """Returns the predictions as arrays."""
        found = self._estimator._predict(x, None, batch_size, outputs)
        return _as_arrays(found)
