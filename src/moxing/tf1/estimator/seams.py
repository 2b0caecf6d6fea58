"""The places at which MoXing takes part in the training of an Estimator.

`connect` hands them to a `Trainer`: the configuration of an Estimator, the call of its methods, the input of a
training, the training itself, and the session that it opens.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from moxing.tf1.estimator import repair
from moxing.tf1.estimator.explained import check_input_fn, explained
from moxing.tf1.module_proxy import ModuleProxy

_MODULE = "tensorflow_estimator.python.estimator.estimator"


#: Methods of an Estimator that read or write its `model_dir`.
_OPERATIONS = (
    "train",
    "evaluate",
    "export_saved_model",
    "export_savedmodel",
    "experimental_export_all_saved_models",
    "latest_checkpoint",
    "get_variable_names",
    "get_variable_value",
)


class Trainer(Protocol):
    """What MoXing does in the training of an Estimator."""

    def configure(self, config: Any, model_dir: str | None) -> tuple[Any, str | None]:
        """Returns the `RunConfig` and the `model_dir` that an Estimator takes in place of the given ones.

        Args:
          config: the `RunConfig`; None if the user gave none.
          model_dir: the argument of the Estimator, or None.
        """

    def warm_start(self, settings: Any) -> Any:
        """Returns what an Estimator takes in place of `warm_start_from`, which may be None."""

    def operation(self, estimator: Any, name: str, arguments: dict[str, Any]) -> AbstractContextManager[Any]:
        """A context around the call of a method.

        Args:
          estimator: the Estimator.
          name: the name of the method.
          arguments: its arguments, which may be changed.

        Returns:
          A context whose value is a function from the result of the method to that of the call.
        """

    def read_input(self, estimator: Any, input_fn: Callable[..., Any], parse: Callable[[Any], Any]) -> Any:
        """Calls `input_fn` for a training.

        Args:
          estimator: the Estimator.
          input_fn: takes no arguments; calls the function of the user.
          parse: turns what it returns into what the Estimator needs.
        """

    def train(self, estimator: Any, spec: Any, listeners: list[Any], train: Callable[[list[Any]], Any]) -> Any:
        """Trains.

        Args:
          estimator: the Estimator.
          spec: the `EstimatorSpec` that `model_fn` returned.
          listeners: those of the user that are called when a checkpoint is saved.
          train: trains with the listeners that it gets, and returns the last loss.
        """

    def is_stopping(self) -> bool:
        """Whether the open training was asked to stop: it saves a checkpoint and does not evaluate it."""

    def open_session(self, open_session: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Opens the session of a training.

        Args:
          open_session: `tf.train.MonitoredTrainingSession`.
          arguments: what the Estimator passes to it.
        """


def connect(trainer: Trainer) -> Any:
    """Makes `trainer` take part in every training of an Estimator. Returns the API of the package.

    Call it once.
    """
    api = repair.load()
    module: Any = importlib.import_module(_MODULE)
    base = module.Estimator
    read_input, train = base._get_features_and_labels_from_input_fn, base._train_with_estimator_spec
    parse = module.estimator_util.parse_input_fn_result

    def get_features_and_labels(self: Any, input_fn: Any, mode: Any) -> Any:
        if mode != module.ModeKeys.TRAIN:
            return read_input(self, input_fn, mode)
        return trainer.read_input(self, lambda: self._call_input_fn(input_fn, mode), parse)

    read_iterator = base._get_iterator_from_input_fn

    def get_iterator(self: Any, input_fn: Any, mode: Any, distribution: Any = None) -> Any:
        if mode != module.ModeKeys.TRAIN or distribution is None:
            return read_iterator(self, input_fn, mode, distribution)
        iterator = distribution.make_input_fn_iterator(
            lambda place: trainer.read_input(
                self, lambda: self._call_input_fn(input_fn, mode, place), lambda data: data
            )
        )
        return iterator, [module.estimator_util.DistributedIteratorInitializerHook(iterator)]

    def train_with_spec(self: Any, spec: Any, worker_hooks: Any, hooks: Any, step: Any, listeners: Any) -> Any:
        return trainer.train(
            self, spec, list(listeners or ()), lambda all_: train(self, spec, worker_hooks, hooks, step, all_)
        )

    _train_without_tpus()
    _connect_evaluation(trainer)
    _connect_construction(module, trainer)
    for name in _OPERATIONS:
        setattr(base, name, _operation(getattr(base, name), trainer))
    base.predict = _prediction(base.predict, trainer)
    base._get_features_and_labels_from_input_fn = get_features_and_labels
    base._get_iterator_from_input_fn = get_iterator
    base._train_with_estimator_spec = train_with_spec
    training = module.training

    def open_session(**arguments: Any) -> Any:
        # Looked up late: a program may have replaced it.
        return trainer.open_session(training.MonitoredTrainingSession, arguments)

    module.training = ModuleProxy(training, {"MonitoredTrainingSession": open_session})
    return api


def _connect_construction(module: Any, trainer: Trainer) -> None:
    complete, warm_start = module.maybe_overwrite_model_dir_and_session_config, module._get_default_warm_start_settings
    module.maybe_overwrite_model_dir_and_session_config = lambda config, model_dir: complete(
        *trainer.configure(config, model_dir)
    )
    create = module.Estimator.__init__

    @functools.wraps(create)
    def create_explained(*args: Any, **kwargs: Any) -> None:
        with explained():
            create(*args, **kwargs)

    module.Estimator.__init__ = create_explained
    module._get_default_warm_start_settings = lambda settings: warm_start(trainer.warm_start(settings))


def _connect_evaluation(trainer: Trainer) -> None:
    """Skips the evaluations of `train_and_evaluate` in one process when the training was asked to stop."""
    training: Any = importlib.import_module("tensorflow_estimator.python.estimator.training")
    listener = training._NewCheckpointListenerForEvaluate

    def unless_stopping(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return None if trainer.is_stopping() else method(self, *args, **kwargs)

        return call

    listener.after_save, listener.end = unless_stopping(listener.after_save), unless_stopping(listener.end)


def _operation(method: Callable[..., Any], trainer: Trainer) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        if "input_fn" in bound.arguments:
            check_input_fn(bound.arguments["input_fn"])
        with explained(), trainer.operation(args[0], method.__name__, bound.arguments) as result_of:
            return result_of(method(*bound.args, **bound.kwargs))

    return call


def _prediction(method: Callable[..., Any], trainer: Trainer) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def predict(*args: Any, **kwargs: Any) -> Iterator[Any]:
        # As in the package, nothing happens before the first value is asked for.
        bound = signature.bind(*args, **kwargs)
        check_input_fn(bound.arguments["input_fn"])
        with explained(), trainer.operation(args[0], method.__name__, bound.arguments):
            yield from method(*bound.args, **bound.kwargs)

    return predict


def _train_without_tpus() -> None:
    """Makes `TPUEstimator(use_tpu=True)` an error at once, not after the graph was built.

    Without a TPU it logs every `log_step_count_steps` steps: it divides them by the steps of a `session.run` on a TPU.
    """
    base: Any = importlib.import_module("tensorflow_estimator.python.estimator.tpu.tpu_estimator").TPUEstimator
    create, signature = base.__init__, inspect.signature(base.__init__)

    @functools.wraps(create)
    def create_without_tpu(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        if bound.arguments["use_tpu"]:
            raise ValueError(
                "TPUEstimator(use_tpu=True), which is its default: TensorFlow 2.21 can no longer run an Estimator on a "
                "TPU. Pass use_tpu=False to train on CPUs or GPUs."
            )
        create(self, *args, **kwargs)
        if self._log_every_n_steps is not None:
            self._log_every_n_steps = bound.arguments["config"].log_step_count_steps

    base.__init__ = create_without_tpu
