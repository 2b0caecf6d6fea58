"""`tf.contrib.opt`: optimizers beyond `tf.train` (`_opt`)."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_PACKAGE = "moxing.tf1.contrib._opt"
_NAMES = _lazy.names(
    (f"{_PACKAGE}.adam:", "AdaMaxOptimizer LazyAdamOptimizer NadamOptimizer"),
    (
        f"{_PACKAGE}.weight_decay:",
        "AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer extend_with_decoupled_weight_decay",
    ),
    (
        f"{_PACKAGE}.sign:",
        "AddSignOptimizer PowerSignOptimizer get_cosine_decay_fn get_linear_decay_fn get_restart_decay_fn",
    ),
    (
        f"{_PACKAGE}.wrappers:",
        "MovingAverageOptimizer MultitaskOptimizerWrapper VariableClippingOptimizer clip_gradients_by_global_norm",
    ),
    (f"{_PACKAGE}.external:", "ExternalOptimizerInterface ScipyOptimizerInterface"),
    (
        f"{_PACKAGE}.refused:",
        "AGNCustomGetter AGNOptimizer DelayCompensatedGradientDescentOptimizer DropStaleGradientOptimizer "
        "ElasticAverageCustomGetter ElasticAverageOptimizer GGTOptimizer LARSOptimizer ModelAverageCustomGetter "
        "ModelAverageOptimizer RegAdagradOptimizer ShampooOptimizer",
    ),
)
__all__ = [*_NAMES]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
