"""`tf.contrib.metrics`: the streaming metrics of tf-slim."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tf_slim.metrics:",
        "accuracy aggregate_metric_map aggregate_metrics auc_using_histogram auc_with_confidence_intervals cohen_kappa "
        "count f1_score precision_at_recall precision_recall_at_equal_thresholds recall_at_precision "
        "sparse_recall_at_top_k streaming_accuracy streaming_auc streaming_concat streaming_covariance "
        "streaming_curve_points streaming_dynamic_auc streaming_false_negative_rate "
        "streaming_false_negative_rate_at_thresholds streaming_false_negatives streaming_false_negatives_at_thresholds "
        "streaming_false_positive_rate streaming_false_positive_rate_at_thresholds streaming_false_positives "
        "streaming_false_positives_at_thresholds streaming_mean streaming_mean_absolute_error "
        "streaming_mean_cosine_distance streaming_mean_iou streaming_mean_relative_error streaming_mean_squared_error "
        "streaming_mean_tensor streaming_pearson_correlation streaming_percentage_less streaming_precision "
        "streaming_precision_at_thresholds streaming_recall streaming_recall_at_k streaming_recall_at_thresholds "
        "streaming_root_mean_squared_error streaming_sensitivity_at_specificity "
        "streaming_sparse_average_precision_at_k streaming_sparse_average_precision_at_top_k "
        "streaming_sparse_precision_at_k streaming_sparse_precision_at_top_k streaming_sparse_recall_at_k "
        "streaming_specificity_at_sensitivity streaming_true_negatives streaming_true_negatives_at_thresholds "
        "streaming_true_positives streaming_true_positives_at_thresholds",
    ),
    ("tensorflow.compat.v1:math", "confusion_matrix"),
    (
        "tensorflow.compat.v1:sets",
        "set_difference=difference set_intersection=intersection set_size=size set_union=union",
    ),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
