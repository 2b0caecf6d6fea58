"""Stand-ins for the private modules of TensorFlow that tensorflow-estimator imports and TensorFlow 2.21 lacks."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

_NO_TPU = "TensorFlow 2.21 can no longer run an Estimator on a TPU. Pass use_tpu=False to train on CPUs or GPUs."

_NO_CLUSTER = "TensorFlow 2.21 cannot run an Estimator with a strategy on several machines."


def modules() -> dict[str, ModuleType]:
    """Returns the stand-ins by the names of the modules that they replace.

    Example:
      >>> sorted(name.rpartition('.')[2] for name in modules())
      ['estimator_training', 'session_support', 'tpu_embedding', 'tpu_embedding_gradient']
    """
    tpu = {
        name: _RefusingModule(name)
        for name in (
            "tensorflow.python.tpu.session_support",
            "tensorflow.python.tpu.tpu_embedding",
            "tensorflow.python.tpu.tpu_embedding_gradient",
        )
    }
    return {"tensorflow.python.distribute.estimator_training": _estimator_training(), **tpu}


class _RefusingModule(ModuleType):
    """A module that has every name. Its values are classes that refuse to be created."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        value = _refusing_class(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


def _refusing_class(name: str) -> type:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not available: {_NO_TPU}")

    return type(name.rpartition(".")[2], (), {"__init__": refuse, "__module__": name.rpartition(".")[0]})


def _estimator_training() -> ModuleType:
    """The module that trained an Estimator with a strategy on several machines."""
    module = ModuleType("tensorflow.python.distribute.estimator_training")
    module.__dict__.update(
        init_run_config=_init_run_config,
        should_run_distribute_coordinator=lambda config: False,
        **dict.fromkeys(("train_and_evaluate", "estimator_train", "estimator_evaluate"), _refuse_cluster),
    )
    return module


def _init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Completes a `RunConfig` with a strategy: for one machine as TensorFlow did, for several with an error."""
    config._distribute_coordinator_mode = None
    tasks = sum(len(hosts) for job, hosts in tf_config.get("cluster", {}).items() if job != "evaluator")
    if getattr(config._experimental_distribute, "remote_cluster", None):
        raise ValueError(f"DistributeConfig(remote_cluster=...): {_NO_CLUSTER}")
    for argument in ("train_distribute", "eval_distribute"):
        strategy, other = getattr(config, f"_{argument}"), getattr(config._experimental_distribute, argument, None)
        if strategy is not None and other is not None:
            raise ValueError(f"Either `{argument}` or `experimental_distribute.{argument}` can be set.")
        strategy = strategy if strategy is not None else other
        setattr(config, f"_{argument}", strategy)
        if strategy is not None and tasks > 1:
            raise ValueError(
                f"RunConfig({argument}={type(strategy).__name__}) in a job of {tasks} processes (TF_CONFIG): "
                f"{_NO_CLUSTER} Leave the argument out: the workers and ps of TF_CONFIG train without it."
            )
    config._init_distributed_setting_from_environment_var(tf_config)
    config._maybe_overwrite_session_config_for_distributed_training()


def _refuse_cluster(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(_NO_CLUSTER)
