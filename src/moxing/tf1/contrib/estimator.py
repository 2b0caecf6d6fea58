"""`tf.contrib.estimator`: heads, hooks and estimators that are in tensorflow-estimator today."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_PACKAGE = "tensorflow_estimator.python.estimator"

_NAMES = _lazy.names(
    (
        "moxing.tensorflow.estimator:",
        "BaselineEstimator DNNEstimator DNNLinearCombinedEstimator LinearEstimator add_metrics "
        "multi_class_head=MultiClassHead binary_classification_head=BinaryClassHead multi_head=MultiHead "
        "multi_label_head=MultiLabelHead poisson_regression_head=PoissonRegressionHead regression_head=RegressionHead "
        "logistic_regression_head=LogisticRegressionHead",
    ),
    (
        "moxing.tensorflow.estimator:experimental",
        "InMemoryEvaluatorHook build_raw_supervised_input_receiver_fn call_logit_fn dnn_logit_fn_builder "
        "linear_logit_fn_builder make_early_stopping_hook make_stop_at_checkpoint_step_hook stop_if_higher_hook "
        "stop_if_lower_hook stop_if_no_decrease_hook stop_if_no_increase_hook",
    ),
    (f"{_PACKAGE}.early_stopping:", "read_eval_metrics"),
    (f"{_PACKAGE}.canned.rnn:", "RNNClassifier RNNEstimator"),
    (f"{_PACKAGE}.canned.saved_model_estimator:", "SavedModelEstimator"),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
