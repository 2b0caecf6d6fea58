"""The classifiers and regressors of `tf.contrib.learn`, on those of `tf.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib import _feature_columns, _lazy
from moxing.tf1.contrib.learn import arrays
from moxing.tf1.contrib.learn.estimators import Estimator, InputFn, _as_arrays
from moxing.tf1.contrib.learn.specs import PredictionKey

__all__ = [
    "DNNClassifier",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "infer_real_valued_columns_from_input",
    "infer_real_valued_columns_from_input_fn",
]

#: Arguments of the original that have no counterpart, with the value that means nothing.
_WITHOUT_EFFECT = {
    "gradient_clip_norm": None,
    "enable_centered_bias": (None, False),
    "_joint_weight": (None, False),
    "_joint_linear_weights": (None, False),
    "embedding_lr_multipliers": None,
    "input_layer_min_slice_size": None,
    "label_keys": None,
    "fix_global_step_increment_bug": (None, False, True),
}


class _Canned(Estimator):
    """An estimator of `tf.estimator` with the methods of `tf.contrib.learn`."""

    _kind = ""
    #: Arguments with another name in `tf.estimator`.
    _renamed: Mapping[str, str] = {"weight_column_name": "weight_column"}

    def __init__(self, *args: Any, **arguments: Any) -> None:
        arguments = {**dict(zip(self._order, args, strict=False)), **arguments}
        engineer = arguments.pop("feature_engineering_fn", None)
        for name, neutral in _WITHOUT_EFFECT.items():
            value = arguments.pop(name, None)
            if value not in (neutral if isinstance(neutral, tuple) else (neutral,)):
                raise NotImplementedError(
                    f"{type(self).__name__}({name}={value!r}): tf.estimator.{self._kind} has no such argument. "
                    "Leave it out, or write a model function."
                )
        given = {self._renamed.get(name, name): value for name, value in arguments.items() if value is not None}
        self._connect(_lazy.resolve(f"moxing.tensorflow.estimator:{self._kind}")(**given), engineer)

    #: The positional arguments of the original.
    _order: Sequence[str] = ()

    def _features(self, features: Any) -> Any:
        # Arrays belong to the column without a name.
        return features if isinstance(features, Mapping) else {_feature_columns.ARRAY: features}

    def _input(self, input_fn: InputFn | None, feed: arrays.Feed) -> InputFn:
        if feed.y is not None:
            feed = feed._replace(y=self._labels(np.asarray(feed.y)))
        return super()._input(input_fn, feed)

    def _labels(self, labels: np.ndarray) -> np.ndarray:
        return labels

    def _column(self, name: str, options: Mapping[str, Any], as_iterable: bool) -> Any:
        found = (
            one[name]
            for one in self._predict(options.get("x"), options.get("input_fn"), options.get("batch_size"), None)
        )
        return found if as_iterable else _as_arrays(found)


class _Classifier(_Canned):
    def _labels(self, labels: np.ndarray) -> np.ndarray:
        return labels.astype(np.int64)

    def _predictions(self, predictions: Any) -> Any:
        # tf.estimator has the classes as strings, and the numbers in another prediction.
        if "class_ids" not in predictions:
            return predictions
        numbers = predictions["class_ids"]
        squeezed = numbers[0] if isinstance(numbers, np.ndarray) else tf.squeeze(numbers, -1)
        return {**predictions, PredictionKey.CLASSES: squeezed}

    def predict(
        self,
        x: Any = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the class numbers, or a dictionary of the `outputs`."""
        if outputs:
            return super().predict(x, input_fn, batch_size, outputs, as_iterable)
        return self.predict_classes(x, input_fn, batch_size, as_iterable)

    def predict_classes(
        self, x: Any = None, input_fn: InputFn | None = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """Returns the class numbers."""
        return self._column(
            PredictionKey.CLASSES, {"x": x, "input_fn": input_fn, "batch_size": batch_size}, as_iterable
        )

    def predict_proba(
        self, x: Any = None, input_fn: InputFn | None = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """Returns the probabilities of all classes."""
        options = {"x": x, "input_fn": input_fn, "batch_size": batch_size}
        return self._column(PredictionKey.PROBABILITIES, options, as_iterable)


class _Regressor(_Canned):
    def _labels(self, labels: np.ndarray) -> np.ndarray:
        return labels.astype(np.float32)

    def _predictions(self, predictions: Any) -> Any:
        if "predictions" not in predictions:
            return predictions
        values = predictions["predictions"]
        single = values.shape[-1] == 1
        return {**predictions, PredictionKey.SCORES: (values[..., 0] if single else values)}

    def predict(
        self,
        x: Any = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the predicted values, or a dictionary of the `outputs`."""
        if outputs:
            return super().predict(x, input_fn, batch_size, outputs, as_iterable)
        return self.predict_scores(x, input_fn, batch_size, as_iterable)

    def predict_scores(
        self, x: Any = None, input_fn: InputFn | None = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """Returns the predicted values."""
        return self._column(PredictionKey.SCORES, {"x": x, "input_fn": input_fn, "batch_size": batch_size}, as_iterable)


_DNN = "hidden_units feature_columns model_dir"
_TOWER = "weight_column_name optimizer activation_fn dropout gradient_clip_norm enable_centered_bias config"
_LINEAR = "weight_column_name optimizer gradient_clip_norm enable_centered_bias"
_COMBINED = (
    "linear_feature_columns linear_optimizer _joint_linear_weights dnn_feature_columns dnn_optimizer dnn_hidden_units "
    "dnn_activation_fn dnn_dropout gradient_clip_norm enable_centered_bias"
)


class DNNClassifier(_Classifier):
    """A network of dense layers that predicts classes."""

    _kind = "DNNClassifier"
    _order = f"{_DNN} n_classes {_TOWER}".split()


class DNNRegressor(_Regressor):
    """A network of dense layers that predicts numbers."""

    _kind = "DNNRegressor"
    _order = f"{_DNN} {_TOWER}".split()


class LinearClassifier(_Classifier):
    """A linear model that predicts classes."""

    _kind = "LinearClassifier"
    _order = f"feature_columns model_dir n_classes {_LINEAR} _joint_weight config".split()


class LinearRegressor(_Regressor):
    """A linear model that predicts numbers."""

    _kind = "LinearRegressor"
    _order = f"feature_columns model_dir {_LINEAR} label_dimension _joint_weight config".split()


class DNNLinearCombinedClassifier(_Classifier):
    """A wide and deep model that predicts classes."""

    _kind = "DNNLinearCombinedClassifier"
    _order = f"model_dir n_classes weight_column_name {_COMBINED} config".split()


class DNNLinearCombinedRegressor(_Regressor):
    """A wide and deep model that predicts numbers."""

    _kind = "DNNLinearCombinedRegressor"
    _order = f"model_dir weight_column_name {_COMBINED} label_dimension config".split()


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """Returns the feature columns for an array, or for arrays by name."""
    if isinstance(x, Mapping):
        return [_column_for(name, np.asarray(values).shape[1:]) for name, values in sorted(x.items())]
    return [_column_for(_feature_columns.ARRAY, np.asarray(x).shape[1:])]


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """Returns the feature columns for the features of an input function."""
    with tf.Graph().as_default():
        found = arrays.input_function(input_fn, arrays.Feed(None, None, None, 1, False))()
        if isinstance(found, tf.data.Dataset | tf.compat.v2.data.Dataset):
            found = tf.data.make_one_shot_iterator(found).get_next()
        features = found[0] if isinstance(found, tuple | list) else found
        named = features if isinstance(features, Mapping) else {_feature_columns.ARRAY: features}
        shapes = {name: tuple(tensor.shape.as_list()[1:]) for name, tensor in named.items()}
    return [_column_for(name, shape) for name, shape in sorted(shapes.items())]


def _column_for(name: str, shape: tuple[int, ...]) -> Any:
    return tf.feature_column.numeric_column(name, shape=shape or (1,))
