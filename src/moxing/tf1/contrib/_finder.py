"""Finds the modules below `tensorflow.contrib`, and suggests replacements for missing ones."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

from moxing.tf1.contrib import _advice, _refusal, _tables

_PACKAGE = "moxing.tf1.contrib"
_KERAS = "tf_keras.api._v1.keras"

# The parts of `tf.contrib` that are modules of this package; the others are tables.
_MODULES = (
    "cluster_resolver",
    "crf",
    "data",
    "distribute",
    "estimator",
    "framework",
    "image",
    "keras",
    "layers",
    "learn",
    "legacy_seq2seq",
    "lookup",
    "losses",
    "metrics",
    "opt",
    "predictor",
    "quantize",
    "rnn",
    "seq2seq",
    "slim",
    "tpu",
    "training",
    "util",
)

PARTS = tuple(sorted({*_MODULES, *_tables.PARTS}))

# Modules by their name in TensorFlow 1. The longest prefix counts; the rest is appended.
_SLIM_MODULES = {
    "data": "tf_slim.data",
    "nets": "tf_slim.nets",
    "evaluation": "tf_slim.evaluation",
    "learning": "tf_slim.learning",
    "losses": "tf_slim.losses",
    "metrics": "tf_slim.metrics",
    "model_analyzer": "tf_slim.model_analyzer",
    "queues": "tf_slim.queues",
    "summaries": "tf_slim.summaries",
}
_OPT_MODULES = (
    "adamax addsign agn_optimizer drop_stale_gradient_optimizer elastic_average_optimizer external_optimizer ggt "
    "lars_optimizer lazy_adam_optimizer model_average_optimizer moving_average_optimizer multitask_optimizer_wrapper "
    "nadam_optimizer powersign reg_adagrad_optimizer shampoo sign_decay variable_clipping_optimizer "
    "weight_decay_optimizers"
)
_RNN_MODULES = "core_rnn core_rnn_cell core_rnn_cell_impl fused_rnn_cell gru_ops lstm_ops rnn rnn_cell"
_SEQ2SEQ_MODULES = "attention_wrapper basic_decoder beam_search_decoder beam_search_ops decoder helper loss"


def _one_module(part: str, folder: str, modules: str) -> dict[str, str]:
    """Returns aliases of the modules of a folder of TensorFlow 1: all are the one module of the part.

    Also directly below the part, where `from FOLDER import MODULE` looks, since the folder is the part too.
    """
    names = [f"{part}.{folder}", *(f"{where}.{one}" for where in (part, f"{part}.{folder}") for one in modules.split())]
    return dict.fromkeys(names, f"{_PACKAGE}.{part}")


_ALIASES = {
    "keras": _KERAS,
    "keras.api": _KERAS,
    "keras.api.keras": _KERAS,
    "keras.python": _KERAS,
    "keras.python.keras": _KERAS,
    **{f"slim.{name}": target for name, target in _SLIM_MODULES.items()},
    **{f"slim.python.slim.{name}": target for name, target in _SLIM_MODULES.items()},
    "slim.python.slim": f"{_PACKAGE}.slim",
    "slim.python": f"{_PACKAGE}.slim",
    "cluster_resolver.python.training": f"{_PACKAGE}.cluster_resolver",
    "data.python.ops": f"{_PACKAGE}.data",
    "distribute.python": f"{_PACKAGE}.distribute",
    "estimator.python.estimator": f"{_PACKAGE}.estimator",
    "framework.python.framework": f"{_PACKAGE}.framework",
    "framework.python.ops": f"{_PACKAGE}.framework",
    "framework.python.ops.audio_ops": f"{_PACKAGE}.more.audio",
    "framework.python.ops.arg_scope": "tf_slim.ops.arg_scope",
    "framework.python.ops.variables": "tf_slim.ops.variables",
    "layers.python.layers": f"{_PACKAGE}.layers",
    "layers.python.layers.initializers": "tf_slim.layers.initializers",
    "layers.python.layers.layers": "tf_slim.layers.layers",
    "layers.python.layers.regularizers": "tf_slim.layers.regularizers",
    "layers.python.layers.utils": "tf_slim.layers.utils",
    "learn.python.learn": f"{_PACKAGE}.learn",
    "learn.python.learn.basic_session_run_hooks": f"{_PACKAGE}.learn.monitors",
    "learn.python.learn.datasets.base": f"{_PACKAGE}.learn.datasets",
    "learn.python.learn.datasets.mnist": "moxing.tf1.examples.tutorials.mnist.input_data",
    "learn.python.learn.datasets.synthetic": f"{_PACKAGE}.learn.datasets",
    "learn.python.learn.datasets.text_datasets": f"{_PACKAGE}.learn.datasets",
    "learn.datasets.base": f"{_PACKAGE}.learn.datasets",
    "learn.datasets.mnist": "moxing.tf1.examples.tutorials.mnist.input_data",
    **{
        f"learn.python.learn.{name}": f"{_PACKAGE}.learn"
        for name in (
            "estimators",
            "estimators.dnn",
            "estimators.dnn_linear_combined",
            "estimators.estimator",
            "estimators.linear",
            "estimators.model_fn",
            "estimators.prediction_key",
            "estimators.run_config",
            "metric_spec",
        )
    },
    "learn.python.learn.experiment": f"{_PACKAGE}.learn.experiment",
    "learn.python.learn.export_strategy": f"{_PACKAGE}.learn.experiment",
    "learn.python.learn.learn_io": f"{_PACKAGE}.learn.arrays",
    "learn.python.learn.learn_io.graph_io": f"{_PACKAGE}.learn.readers",
    "learn.python.learn.learn_io.numpy_io": f"{_PACKAGE}.learn.arrays",
    "learn.python.learn.learn_io.pandas_io": f"{_PACKAGE}.learn.arrays",
    "learn.python.learn.learn_runner": f"{_PACKAGE}.learn.experiment",
    "learn.python.learn.preprocessing.categorical_vocabulary": f"{_PACKAGE}.learn.preprocessing",
    "learn.python.learn.preprocessing.text": f"{_PACKAGE}.learn.preprocessing",
    "learn.python.learn.utils": f"{_PACKAGE}.learn.experiment",
    "learn.python.learn.utils.input_fn_utils": f"{_PACKAGE}.learn.experiment",
    "learn.python.learn.utils.saved_model_export_utils": f"{_PACKAGE}.learn.experiment",
    "learn.utils": f"{_PACKAGE}.learn.experiment",
    "learn.utils.saved_model_export_utils": f"{_PACKAGE}.learn.experiment",
    "losses.python.losses": f"{_PACKAGE}.losses",
    "metrics.python.ops": f"{_PACKAGE}.metrics",
    "metrics.python.ops.metric_ops": "tf_slim.metrics.metric_ops",
    **_one_module("crf", "python.ops", "crf"),
    **_one_module("legacy_seq2seq", "python.ops", "seq2seq"),
    **_one_module("opt", "python.training", _OPT_MODULES),
    **_one_module("rnn", "python.ops", _RNN_MODULES),
    **_one_module("seq2seq", "python.ops", _SEQ2SEQ_MODULES),
    "tpu.python.tpu": f"{_PACKAGE}.tpu",
    "tpu.python.tpu.tpu_config": "tensorflow_estimator.python.estimator.tpu.tpu_config",
    "tpu.python.tpu.tpu_estimator": "tensorflow_estimator.python.estimator.tpu.tpu_estimator",
    "tpu.python.tpu.tpu_optimizer": f"{_PACKAGE}.tpu",
    "training.python.training": f"{_PACKAGE}.training",
    "training.python.training.hparam": f"{_PACKAGE}.training",
    "training.python.training.training": "tf_slim.training.training",
    "training.python.training.evaluation": "tf_slim.training.evaluation",
}
# Packages above these modules: `from tensorflow.contrib.framework.python import ops`.
_ALIASES.update({f"{name}.python": f"{_PACKAGE}.{name}" for name in _MODULES if name != "keras"})


def part(name: str) -> ModuleType:
    """Returns the module `tf.contrib.NAME`.

    Raises:
      AttributeError: it does not exist. The message lists the available parts and suggests a replacement.
    """
    if name not in PARTS:
        raise AttributeError(_advice.missing_part(name, PARTS))
    return importlib.import_module(f"{_PACKAGE}.{name}")


class AliasFinder:
    """Serves the old module names below `moxing.tf1.contrib`, which user modules import as `tensorflow.contrib`.

    It comes before Python's own finders, which would load the file below the aliased package a second time, without
    its repairs and with different classes.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        wanted = _below_contrib(name)
        head, _, below = wanted.partition(".")
        if head in _tables.PARTS and head not in _MODULES:
            loader = _AliasLoader(f"{_PACKAGE}.{head}") if below else _TableLoader(head)
            return importlib.util.spec_from_loader(name, loader, is_package=True)
        real = _real_name(wanted) if wanted else None
        if real is None:
            return None
        return importlib.util.spec_from_loader(name, _AliasLoader(real), is_package=True)


class AdviceFinder:
    """Comes last: raises an error with a suggestion for modules below `tensorflow.contrib` that were not found."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        wanted = _below_contrib(name)
        if wanted:
            old = f"tensorflow.contrib.{wanted}"
            raise ModuleNotFoundError(f"No module named {old!r}: {_advice.missing_part(wanted, PARTS)}", name=old)


def install() -> None:
    """Installs both finders. Calling it again changes nothing."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())
        sys.meta_path.append(AdviceFinder())


class _AliasLoader(Loader):
    """Gives a module a second name; both names are the same object."""

    def __init__(self, real_name: str) -> None:
        self._real_name = real_name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if self._real_name.startswith("tf_slim"):
            from moxing.tf1.contrib import _slim_repairs

            _slim_repairs.load()
        if self._real_name.startswith("tensorflow_estimator"):
            importlib.import_module("moxing.tensorflow.estimator")
        module = importlib.import_module(self._real_name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten the spec of the module with that of the second name.
        module.__spec__ = self._spec


class _TableLoader(Loader):
    """Makes the module of a part that is a table."""

    def __init__(self, part: str) -> None:
        self._part = part

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _refusal.module(spec.name, f"tf.contrib.{self._part}", _tables.PARTS[self._part])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


def _below_contrib(name: str) -> str:
    """Returns the part of a module name below this package; empty for its private modules."""
    below = name.removeprefix(_PACKAGE + ".")
    return "" if below == name or below.startswith(("_", "more.")) or below == "more" else below


def _real_name(wanted: str) -> str | None:
    prefix = wanted
    while prefix:
        if prefix in _ALIASES:
            real = _ALIASES[prefix] + wanted[len(prefix) :]
            return real if _exists(real) else None
        prefix = prefix.rpartition(".")[0]
    return None


def _exists(name: str) -> bool:
    if name.partition(".")[0] == "tensorflow_estimator":
        # Looking for a module imports the packages above it, which must be repaired before.
        importlib.import_module("moxing.tensorflow.estimator")
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
