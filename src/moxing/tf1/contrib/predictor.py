"""`tf.contrib.predictor`: functions that compute predictions with an exported model or an Estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

__path__: list[str] = []

__all__ = ["from_estimator", "from_saved_model"]

_SERVING = "serving_default"


class Predictor:
    """Computes predictions in a session of its own.

    Args:
      session: a session with the model loaded.
      feeds: the input tensors by name.
      fetches: the output tensors by name.

    Attributes:
      session: the session.
      graph: its graph.
      feed_tensors: the input tensors by name.
      fetch_tensors: the output tensors by name.
    """

    def __init__(self, session: Any, feeds: Mapping[str, Any], fetches: Mapping[str, Any]) -> None:
        self.session, self.graph = session, session.graph
        self.feed_tensors, self.fetch_tensors = dict(feeds), dict(fetches)

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs by name, as NumPy arrays."""
        unknown = sorted(set(input_dict) - set(self.feed_tensors))
        if unknown:
            raise ValueError(f"predictor: got the inputs {unknown}, expected {sorted(self.feed_tensors)}.")
        feed = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        return self.session.run(self.fetch_tensors, feed)


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """Loads an exported model.

    Args:
      export_dir: the directory of the SavedModel.
      signature_def_key: the signature; `serving_default` by default.
      signature_def: the signature itself, instead of its key.
      input_names: names of the input tensors, with `output_names` instead of a signature.
      output_names: names of the output tensors.
      tags: tags of the graph, separated by commas; `serve` by default.
      graph: the graph to load it into.
      config: of the session.
    """
    import tensorflow.compat.v1 as tf

    _check_is_version(export_dir)
    graph = graph or tf.Graph()
    with graph.as_default():
        session = tf.Session(config=config)
        loaded = tf.saved_model.load(session, (tags or "serve").split(","), export_dir)
    if input_names is None or output_names is None:
        if signature_def is None:
            key = signature_def_key or _SERVING
            if key not in loaded.signature_def:
                raise ValueError(f"{export_dir}: no signature {key!r}; it has {sorted(loaded.signature_def)}.")
            signature_def = loaded.signature_def[key]
        input_names = {name: tensor.name for name, tensor in signature_def.inputs.items()}
        output_names = {name: tensor.name for name, tensor in signature_def.outputs.items()}
    tensor = graph.get_tensor_by_name
    return Predictor(
        session,
        {name: tensor(path) for name, path in input_names.items()},
        {name: tensor(path) for name, path in output_names.items()},
    )


def _check_is_version(export_dir: str) -> None:
    """Names the versions in a directory that has no model itself, as the parent directory of exports has."""
    import tensorflow.compat.v1 as tf

    if tf.gfile.IsDirectory(export_dir) and not tf.saved_model.maybe_saved_model_directory(export_dir):
        names = [name.rstrip("/") for name in tf.gfile.ListDirectory(export_dir)]
        folders = [os.path.join(export_dir, name) for name in sorted(names)]
        versions = [path for path in folders if tf.saved_model.maybe_saved_model_directory(path)]
        if versions:
            raise OSError(
                f"SavedModel file does not exist at: export_dir={export_dir!r}; the models in it are "
                f"{', '.join(versions[-5:])}."
            )


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """Builds the model of an Estimator for prediction and restores its newest checkpoint.

    Args:
      estimator: the Estimator, trained.
      serving_input_receiver_fn: returns the inputs.
      output_key: which of the `export_outputs` to compute; `serving_default` by default.
      graph: the graph to build it in.
      config: of the session.
    """
    import tensorflow.compat.v1 as tf

    checkpoint = estimator.latest_checkpoint()
    if checkpoint is None:
        raise ValueError(f"{estimator.model_dir} has no checkpoint: train the Estimator first.")
    graph = graph or tf.Graph()
    with graph.as_default():
        receiver = serving_input_receiver_fn()
        tf.train.create_global_step(graph)
        spec = estimator.model_fn(receiver.features, None, "infer", estimator.config)
        output = (spec.export_outputs or {}).get(output_key or _SERVING)
        outputs = getattr(output, "outputs", None) if output_key is not None else spec.predictions
        if output_key is not None and outputs is None:
            raise ValueError(f"output_key={output_key!r}: the model has {sorted(spec.export_outputs or {})}.")
        session = tf.train.MonitoredSession(
            tf.train.ChiefSessionCreator(
                scaffold=spec.scaffold, config=config, checkpoint_filename_with_path=checkpoint
            )
        )
    fetches = outputs if isinstance(outputs, dict) else {"output": outputs}
    return Predictor(session, receiver.receiver_tensors, fetches)
