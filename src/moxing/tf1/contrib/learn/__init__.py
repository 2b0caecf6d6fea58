"""`tf.contrib.learn`: its estimators on `tf.estimator`, its datasets, text processors and monitors.

`estimators` and `canned` are the estimators, `experiment` runs them, `monitors` watches them; `datasets`,
`preprocessing`, `arrays` and `readers` prepare data. What is missing refuses when it is called.
"""

from __future__ import annotations

from typing import Any

from moxing.tf1.contrib import _lazy, _refusal

__path__ = list(__path__)

_HERE = "moxing.tf1.contrib.learn"

_MODULES = {
    "datasets": f"{_HERE}.datasets:",
    "io": f"{_HERE}.arrays:",
    "learn_runner": f"{_HERE}.experiment:",
    "monitors": f"{_HERE}.monitors:",
    "preprocessing": f"{_HERE}.preprocessing:",
    "utils": f"{_HERE}.experiment:",
}
_NAMES = _MODULES | _lazy.names(
    (f"{_HERE}.experiment:", "Experiment InputFnOps make_export_strategy"),
    (f"{_HERE}.estimators:", "BaseEstimator=Estimator Estimator SKCompat"),
    (f"{_HERE}.specs:", "MetricSpec ModeKeys ModelFnOps PredictionKey RunConfig"),
    (
        f"{_HERE}.canned:",
        "DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor LinearClassifier "
        "LinearRegressor infer_real_valued_columns_from_input infer_real_valued_columns_from_input_fn",
    ),
    (f"{_HERE}.arrays:", "extract_pandas_data extract_pandas_labels extract_pandas_matrix"),
    (f"{_HERE}.readers:", "read_batch_examples read_batch_features read_batch_record_features run_n"),
)

#: Names that refuse when they are called, with what to use.
_REFUSED = {
    "use tf.contrib.learn.DNNClassifier or tf.estimator": (
        "DNNEstimator DynamicRnnEstimator KMeansClustering LogisticRegressor StateSavingRnnEstimator SVM "
        "TensorFlowDNNClassifier TensorFlowDNNRegressor TensorFlowEstimator TensorFlowLinearClassifier "
        "TensorFlowLinearRegressor TensorFlowRNNClassifier build_parsing_serving_input_fn evaluate infer train "
        "multi_class_head multi_head multi_label_head poisson_regression_head regression_head run_feeds"
    ),
    "read the data with tf.data": (
        "extract_dask_data extract_dask_labels queue_parsed_features read_keyed_batch_examples "
        "read_keyed_batch_features"
    ),
}
_REFUSALS = {name: instead for instead, words in _REFUSED.items() for name in words.split()}

__all__ = sorted({*_NAMES, *_REFUSALS})
_find, __dir__ = _lazy.module_functions(__name__, {**_NAMES, **dict.fromkeys(_REFUSALS, "")})


def __getattr__(name: str) -> Any:
    if name in _REFUSALS:
        return _refusal.refusal(f"tf.contrib.learn.{name}", _REFUSALS[name])
    return _find(name)
