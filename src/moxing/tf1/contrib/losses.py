"""`tf.contrib.losses`: the losses with predictions first, as contrib had them."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tf_slim.losses:",
        "absolute_difference add_loss compute_weighted_loss cosine_distance get_losses get_regularization_losses "
        "get_total_loss hinge_loss log_loss mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy "
        "softmax_cross_entropy sparse_softmax_cross_entropy metric_learning",
    ),
    (
        "tf_slim.losses.metric_learning:",
        "cluster_loss contrastive_loss lifted_struct_loss npairs_loss npairs_loss_multilabel triplet_semihard_loss",
    ),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
