"""Variables that have another type in the checkpoint than in the model: reads and casts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoints.choose import ChosenCheckpoint
from moxing.tensorflow.executor.loop.session import session_config
from moxing.tf1.graph.variables import saved_shape

#: The name of a variable in a checkpoint.
NameOf = Callable[[tf.Variable], str]


def variables_to_cast(
    checkpoint: ChosenCheckpoint, variables: Sequence[tf.Variable], name_of: NameOf
) -> list[tf.Variable]:
    """Those of `variables` that have another type in the checkpoint.

    Raises:
      ValueError: for types that cannot be cast, such as an integer in place of a float.
    """
    saved = checkpoint.dtypes
    different = [variable for variable in variables if saved[name_of(variable)] != variable.dtype.base_dtype]
    wrong = [
        f"  {name}: {saved[name].name} in the checkpoint, {variable.dtype.base_dtype.name} in the model"
        for name, variable in ((name_of(variable), variable) for variable in different)
        if not _same_kind(saved[name], variable.dtype) or saved_shape(variable) != variable.shape.as_list()
    ]
    if wrong:
        listing = "\n".join(wrong)
        raise ValueError(
            f"{len(wrong)} variables have other types in the checkpoint {checkpoint.prefix} and cannot be cast:\n"
            f"{listing}\n`moxing checkpoint convert --dtype` writes a checkpoint with other types."
        )
    if different:
        first = different[0]
        tf.logging.info(
            "%d variables have another type in the checkpoint and are cast, such as %s: %s there, %s in the model.",
            len(different),
            name_of(first),
            saved[name_of(first)].name,
            first.dtype.base_dtype.name,
        )
    return different


def cast_values(
    checkpoint: ChosenCheckpoint, variables: Sequence[tf.Variable], name_of: NameOf
) -> Iterator[tuple[tf.Variable, np.ndarray]]:
    """The variables with their values from the checkpoint, cast to the types of the model."""
    for variable in variables:
        name, dtype = name_of(variable), variable.dtype.base_dtype
        # Reads with the op that restores: TensorFlow's checkpoint reader cannot read float16 in the V1 format.
        with tf.Graph().as_default(), tf.Session(config=session_config()) as session:
            read = tf.raw_ops.RestoreV2(
                prefix=checkpoint.prefix,
                tensor_names=[name],
                shape_and_slices=[""],
                dtypes=[checkpoint.dtypes[name]],
            )
            (value,) = session.run(read)
        with np.errstate(over="ignore"):
            cast = value.astype(dtype.as_numpy_dtype)
        lost = cast != value if dtype.is_integer else np.isinf(cast) & np.isfinite(value)
        if lost.any():
            largest = np.abs(value[lost].astype(np.float64)).max()
            raise ValueError(
                f"{int(lost.sum())} values of {name} in the checkpoint {checkpoint.prefix} do not fit into "
                f"{dtype.name}, its type in the model: the largest is {largest:g}, the limit is {float(dtype.max):g}."
            )
        yield variable, cast


def _same_kind(one: tf.DType, other: tf.DType) -> bool:
    return bool((one.is_floating and other.is_floating) or (one.is_integer and other.is_integer))
