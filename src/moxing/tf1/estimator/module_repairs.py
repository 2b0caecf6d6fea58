"""Repairs of single modules of tensorflow-estimator for the Keras and pandas of today."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any


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


def know_batch_of_masks(rnn: ModuleType) -> None:
    """Makes RNN models accept a batch of one sequence whose size is known when the graph is built.

    The mask comes without a static batch size. Keras broadcasts it against the outputs: with 1 sequence the result
    loses its static size, and the loop over time refuses that.

    Args:
      rnn: the module `canned.rnn`.
    """
    create = rnn.RNNModel.__init__

    @functools.wraps(create)
    def create_model(self: Any, rnn_layer: Any, *args: Any, **kwargs: Any) -> None:
        call = rnn_layer.call

        @functools.wraps(call)
        def call_with_known_batch(inputs: Any, mask: Any = None, **arguments: Any) -> Any:
            if mask is not None:
                mask.set_shape([inputs.shape[0], None])
            return call(inputs, mask=mask, **arguments)

        rnn_layer.call = call_with_known_batch
        create(self, rnn_layer, *args, **kwargs)

    rnn.RNNModel.__init__ = create_model


def name_cells_as_before(rnn: ModuleType) -> None:
    """Gives the variables of RNN Estimators the names of TensorFlow 1.15: `rnn_model/rnn/kernel`, then `kernel_1`.

    Later versions of Keras put the name of the cell between, and could not restore the checkpoints.

    Args:
      rnn: the module `canned.rnn`.
    """
    make = rnn._make_rnn_layer

    @functools.wraps(make)
    def make_rnn_layer(*args: Any, **kwargs: Any) -> Any:
        layer = make(*args, **kwargs)
        build = layer.build

        @functools.wraps(build)
        def build_layer(input_shape: Any) -> None:
            # Keras opens no name scope for cells that are built.
            _build_cells(layer.cell, input_shape[0], input_shape[-1])
            build(input_shape)

        layer.build = build_layer
        return layer

    rnn.__dict__["_make_rnn_layer"] = make_rnn_layer


def _build_cells(cell: Any, batch: int | None, size: int) -> None:
    """Builds a cell, or those that are stacked in it, in the present name scope."""
    for one in getattr(cell, "cells", [cell]):
        # A cell need not be a layer.
        if getattr(one, "built", None) is False:
            one.build((batch, size))
            one.built = True
        size = getattr(one, "output_size", size)
    if hasattr(cell, "cells"):
        cell.built = True


def let_metrics_change_shape(head: ModuleType) -> None:
    """Makes the evaluation of time series work with resource variables.

    A metric keeps the last value of a tensor, whatever its shape, in a variable that starts as a scalar. Only a
    reference variable accepts that.

    Args:
      head: the module `canned.timeseries.head`.
    """
    tf = head.tf

    def identity_metric(name: str, input_tensor: Any) -> tuple[Any, Any]:
        variable = tf.compat.v1.Variable(
            initial_value=tf.zeros([], input_tensor.dtype),
            name=f"{name}_identity_metric",
            collections=[tf.compat.v1.GraphKeys.LOCAL_VARIABLES],
            validate_shape=False,
            shape=tf.TensorShape(None),
            use_resource=True,
        )
        value = variable.read_value()
        value.set_shape(input_tensor.shape)
        return value, variable.assign(input_tensor).op

    head.__dict__["_identity_metric_single"] = identity_metric
