"""`tf.estimator`: the package tensorflow-estimator on MoXing's step loop, data position and signals.

The names are those of `tf.estimator` in TensorFlow 1. `trainer` takes part in every training: `loop_hook` runs many
steps per `session.run`, `resume` keeps the position in the data with the checkpoints, `model_dir` serves directories on
object stores, `strategies` several GPUs, `progress_hook` shows a bar. `job` is the part of a process in a job of
several: its TF_CONFIG, its server, its peers; `step_budget` shares the steps among them, `evaluator` is the process
that evaluates.

Large arrays of datasets are not in the graph, nor in the files that hold it: `graph.pbtxt`, `.meta` and the event file
have the whole model, and an operation or a placeholder in place of the data. `tf.train.import_meta_graph` restores and
runs the model from them; it cannot read the data.
"""

from __future__ import annotations

from typing import Any

from moxing.tensorflow.estimator.job import EstimatorJob as _EstimatorJob
from moxing.tensorflow.estimator.job import set_tf_config as _set_tf_config
from moxing.tensorflow.estimator.trainer import EstimatorTrainer as _EstimatorTrainer
from moxing.tf1.estimator import job_seams as _job_seams
from moxing.tf1.estimator import seams as _seams

_set_tf_config()
_job = _EstimatorJob()
_api: Any = _seams.connect(_EstimatorTrainer(_job, lambda: _api.RunConfig()))
_job_seams.connect(_job)

_GONE = {
    "BoostedTrees": "tensorflow-estimator 2.15 no longer has it. Use the package tensorflow-decision-forests",
}


def __getattr__(name: str) -> Any:
    try:
        return getattr(_api, name)
    except AttributeError:
        pass
    for prefix, reason in _GONE.items():
        if name.startswith(prefix):
            raise AttributeError(f"tf.estimator.{name} is not available: {reason}.", name=name)
    raise AttributeError(f"module 'tf.estimator' has no attribute {name!r}.", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_api)})
