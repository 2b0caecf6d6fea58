"""MoXing on TensorFlow: `import moxing.tensorflow as mox`.

The public API is `__all__`. Importing this package imports TensorFlow, repairs Keras layers for
graphs of TensorFlow 1, makes Adam faster on embeddings, sets the log levels and prints the versions. Scripts import
some modules below it at the paths of the original, and extensions those that `docs/extending.md` names; everything else
below it is private.
"""

import difflib as _difflib
from typing import Any as _Any

from moxing.tf1 import environment as _environment

_environment.import_tensorflow()

# ruff: noqa: E402  (environment variables must be set before TensorFlow is imported)
from moxing._version import __version__
from moxing.framework import file
from moxing.framework.cache import cache
from moxing.tensorflow import start_up as _start_up
from moxing.tensorflow.datasets import (
    AsyncRawGenerator,
    ImageClassificationRawDataset,
    ImageClassificationRawMetadata,
    ImageClassificationTFRecordDataset,
    ImageClassificationTFRecordMetadata,
    MultilabelClassificationRawDataset,
    MultilabelClassificationRawMetadata,
    get_dataset,
    get_dataset_meta,
    get_tfrecord,
)
from moxing.tensorflow.executor import (
    AggregativeSessionRunHook,
    BestCheckpointHook,
    EarlyStoppingHook,
    ExportKeys,
    ExportSpec,
    GradientNormHook,
    InputSpec,
    LogEvaluationMetricHook,
    ModeKeys,
    ModelSpec,
    NanGuardHook,
    PlateauLREarlyStoppingHook,
    ProfilerHook,
    RunEndHook,
    RunResult,
    ThroughputHook,
    get_collection,
    get_flag,
    run,
    set_flag,
    var_scope,
)
from moxing.tensorflow.nets import NetworkKeys, get_model_fn, get_model_meta
from moxing.tensorflow.optimizer import OptimizerKeys, get_optimizer_fn, get_optimizer_wrapper_fn
from moxing.tensorflow.preprocessing import PreprocessingKeys, get_data_augmentation_fn
from moxing.tf1.graph import keras_layers as _keras_layers
from moxing.tf1.graph import sparse_adam as _sparse_adam

_keras_layers.install_update_recorder()
_keras_layers.install_graph_seeds()
_sparse_adam.install()
_start_up.announce(__version__)

__all__ = [
    "AggregativeSessionRunHook",
    "AsyncRawGenerator",
    "BestCheckpointHook",
    "EarlyStoppingHook",
    "ExportKeys",
    "ExportSpec",
    "GradientNormHook",
    "ImageClassificationRawDataset",
    "ImageClassificationRawMetadata",
    "ImageClassificationTFRecordDataset",
    "ImageClassificationTFRecordMetadata",
    "InputSpec",
    "LogEvaluationMetricHook",
    "ModeKeys",
    "ModelSpec",
    "MultilabelClassificationRawDataset",
    "MultilabelClassificationRawMetadata",
    "NanGuardHook",
    "NetworkKeys",
    "OptimizerKeys",
    "PlateauLREarlyStoppingHook",
    "PreprocessingKeys",
    "ProfilerHook",
    "RunEndHook",
    "RunResult",
    "ThroughputHook",
    "__version__",
    "cache",
    "file",
    "get_collection",
    "get_data_augmentation_fn",
    "get_dataset",
    "get_dataset_meta",
    "get_flag",
    "get_model_fn",
    "get_model_meta",
    "get_optimizer_fn",
    "get_optimizer_wrapper_fn",
    "get_tfrecord",
    "run",
    "set_flag",
    "var_scope",
]

#: Names of the original that this version does not have, by feature.
_MISSING = {
    "hyper-parameter search": ("auto",),
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    for feature, names in _MISSING.items():
        if name in names:
            raise AttributeError(f"mox.{name}: {feature} is not available in MoXing {__version__}.")
    near = _difflib.get_close_matches(name, __all__, n=1)
    hint = f" Did you mean mox.{near[0]}?" if near else ""
    raise AttributeError(f"module 'moxing.tensorflow' has no attribute {name!r}.{hint}")
