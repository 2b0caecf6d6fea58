"""`tf.contrib.training`: hyper-parameters, training steps with clipped gradients, evaluation of checkpoints."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    ("moxing.tf1.contrib._hparams:", "HParams parse_values"),
    (
        "tf_slim.training.training:",
        "add_gradients_summaries clip_gradient_norms clip_gradient_norms_fn create_train_op multiply_gradients train",
    ),
    (
        "tf_slim.training.evaluation:",
        "StopAfterNEvalsHook SummaryAtEndHook checkpoints_iterator evaluate_once evaluate_repeatedly "
        "get_or_create_eval_step wait_for_new_checkpoint",
    ),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
