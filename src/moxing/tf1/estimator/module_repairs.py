"""Repairs of single modules of tensorflow-estimator for the Keras and pandas of today."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from moxing.tf1.module_proxy import ModuleProxy


def read_text_columns(feeding_functions: ModuleType) -> None:
    """Makes `pandas_input_fn` read the text columns of pandas 3.

    They have a data type of their own, which is unknown to TensorFlow. They become columns of Python objects, as in the
    pandas of that time.

    Args:
      feeding_functions: the module `inputs.queues.feeding_functions`.
    """
    enqueue_data = feeding_functions._enqueue_data

    @functools.wraps(enqueue_data)
    def enqueue(data: Any, *args: Any, **kwargs: Any) -> Any:
        if feeding_functions.HAS_PANDAS and isinstance(data, feeding_functions.pd.DataFrame):
            data = _with_objects(data, feeding_functions.pd.StringDtype)
        return enqueue_data(data, *args, **kwargs)

    feeding_functions.__dict__["_enqueue_data"] = enqueue


def _with_objects(frame: Any, text_type: type) -> Any:
    """The frame with Python objects in its text columns and its text index."""
    objects = frame.copy(deep=False)
    for position, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, text_type):
            # By position: two columns may have the same name.
            objects.isetitem(position, frame.iloc[:, position].astype(object))
    is_text = isinstance(frame.index.dtype, text_type)
    return objects.set_axis(frame.index.astype(object)) if is_text else objects


def know_batch_of_lengths(rnn: ModuleType) -> None:
    """Makes RNN Estimators accept a batch of one sequence whose size is known when the graph is built.

    The lengths of the sequences come without a static batch size. Keras broadcasts the mask that is made of them
    against the outputs: with 1 sequence the result loses its static size, and the loop over time refuses that.

    Args:
      rnn: the module `canned.rnn`.
    """
    tf = rnn.tf
    layer = tf.keras.experimental.SequenceFeatures

    class SequenceFeatures(layer):  # type: ignore[valid-type, misc]
        def call(self, features: Any, training: bool | None = None) -> Any:
            sequences, lengths = super().call(features, training=training)
            lengths.set_shape(sequences.shape[:1])
            return sequences, lengths

    experimental = ModuleProxy(tf.keras.experimental, {"SequenceFeatures": SequenceFeatures})
    rnn.__dict__["tf"] = ModuleProxy(tf, {"keras": ModuleProxy(tf.keras, {"experimental": experimental})})
