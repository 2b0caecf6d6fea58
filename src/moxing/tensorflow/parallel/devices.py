"""The devices of the towers of this process, and the placement of variables."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")

#: Suffixes of the types of operations that only pass variables on to functions. The operations inside those functions
#: have devices of their own.
_FUNCTION_CALLS = ("If", "Case", "While", "PartitionedCall")


#: No machine has more GPUs; each is a tower in the graph.
_MOST_TOWERS = 1024


def tower_devices(warn: bool = True) -> list[str]:
    """Returns a device for every tower: GPUs, or logical CPUs if there are too few GPUs.

    Args:
      warn: log a warning if there are too few GPUs.

    Example:
      >>> FLAGS.set('num_gpus', 2); FLAGS.set('clone_on_cpu', True)
      >>> tower_devices()
      ['/cpu:0', '/cpu:1']
      >>> FLAGS.set('num_gpus', 1); FLAGS.set('clone_on_cpu', False)
    """
    count = FLAGS.get("num_gpus")
    if count < 1:
        raise FlagError(f"--num_gpus={count}: expected 1 or more; on a CPU leave the flag out.")
    if count > _MOST_TOWERS:
        raise FlagError(f"--num_gpus={count}: expected at most {_MOST_TOWERS:,}, the GPUs of this machine.")
    available = len(tf.config.list_physical_devices("GPU"))
    if FLAGS.get("clone_on_cpu"):
        return [f"/cpu:{index}" for index in range(count)]
    if available >= count:
        return [f"/gpu:{index}" for index in range(count)]
    if count == 1:
        return ["/cpu:0"]
    if warn:
        tf.logging.warning(
            "--num_gpus=%d, but this machine has %d: the %d towers run on logical CPU devices. A step still takes %d "
            "batches.",
            count, available, count, count,
        )  # fmt: skip
    return [f"/cpu:{index}" for index in range(count)]


def parameter_device() -> str | None:
    """Returns the device of the variables by `--local_parameter_device`: `cpu`, `gpu`, or None if the flag is not set.

    Example:
      >>> FLAGS.set('local_parameter_device', 'cpu')
      >>> parameter_device()
      'cpu'
      >>> FLAGS.set('local_parameter_device', None)
    """
    wanted: str | None = FLAGS.get("local_parameter_device")
    if wanted == "gpu" and not tf.config.list_physical_devices("GPU"):
        tf.logging.warning("--local_parameter_device=gpu, but this machine has no GPU: the variables are on the CPU.")
        return "cpu"
    return wanted


def device_function(device: str, variables: str | Callable[[tf.Operation], str]) -> Callable[[tf.Operation], str]:
    """Returns a device function for `tf.device` that places variables on one device and operations on another.

    Args:
      device: the device of operations; empty: TensorFlow decides.
      variables: the device of variables, or a function from the variable's operation to its device.
    """

    def choose(operation: tf.Operation) -> str:
        if operation.type in _VARIABLES:
            return variables if isinstance(variables, str) else variables(operation)
        for tensor in () if operation.type.endswith(_FUNCTION_CALLS) else operation.inputs:
            if tensor.dtype == tf.resource and tensor.op.device:
                # An operation that reads or writes a variable must be on its device.
                return str(tensor.op.device)
        return device

    def merge(operation: tf.Operation) -> str:
        # A device function overrides inner `tf.device` contexts unless it merges them itself.
        if not operation.device:
            return choose(operation)
        wanted = tf.DeviceSpec.from_string(operation.device)
        if wanted.job is not None:
            return str(operation.device)
        return str(tf.DeviceSpec.from_string(choose(operation)).make_merged_spec(wanted).to_string())

    return merge
