"""The devices that the towers of this process stand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")

#: Ends of the types of operations that are given variables which only their branches and bodies read, and what is in
#: those has devices of its own.
_FUNCTIONS = ("If", "Case", "While", "PartitionedCall")


def tower_devices(tell: bool = True) -> list[str]:
    """A device for every tower: the GPUs, or where there are too few of them, as many logical CPUs.

    Args:
      tell: say so where there are too few.

    Example:
      >>> FLAGS.set('num_gpus', 2); FLAGS.set('clone_on_cpu', True)
      >>> tower_devices()
      ['/cpu:0', '/cpu:1']
      >>> FLAGS.set('num_gpus', 1); FLAGS.set('clone_on_cpu', False)
    """
    count = FLAGS.get("num_gpus")
    if count < 1:
        raise FlagError(f"--num_gpus={count}: expected 1 or more; on a CPU leave the flag out.")
    there = len(tf.config.list_physical_devices("GPU"))
    if FLAGS.get("clone_on_cpu"):
        return [f"/cpu:{index}" for index in range(count)]
    if there >= count:
        return [f"/gpu:{index}" for index in range(count)]
    if count == 1:
        return ["/cpu:0"]
    if tell:
        tf.logging.warning(
            "--num_gpus=%d and this machine has %d: the %d towers are built on as many logical CPU devices. A step "
            "takes %d batches as it would there.",
            count, there, count, count,
        )  # fmt: skip
    return [f"/cpu:{index}" for index in range(count)]


def parameter_device() -> str | None:
    """Where `--local_parameter_device` wants the variables: `cpu`, `gpu`, or None where it says nothing.

    Example:
      >>> FLAGS.set('local_parameter_device', 'cpu')
      >>> parameter_device()
      'cpu'
      >>> FLAGS.set('local_parameter_device', None)
    """
    wanted: str | None = FLAGS.get("local_parameter_device")
    if wanted == "gpu" and not tf.config.list_physical_devices("GPU"):
        tf.logging.warning("--local_parameter_device=gpu and this machine has no GPU: the variables are on the CPU.")
        return "cpu"
    return wanted


def logical_cpus(config: tf.ConfigProto, devices: Sequence[str]) -> None:
    """Lets a session have as many logical CPU devices as towers stand on.

    Example:
      >>> config = tf.ConfigProto()
      >>> logical_cpus(config, ['/cpu:0', '/cpu:1'])
      >>> config.device_count['CPU']
      2
    """
    if devices and devices[0].startswith("/cpu"):
        config.device_count["CPU"] = len(devices)


def placed(device: str, variables: str | Callable[[tf.Operation], str]) -> Callable[[tf.Operation], str]:
    """A device function: variables go to one device, what uses them to another.

    Args:
      device: where operations go; empty: TensorFlow decides.
      variables: where variables go; or a function that tells it for each.
    """

    def choose(operation: tf.Operation) -> str:
        if operation.type in _VARIABLES:
            return variables if isinstance(variables, str) else variables(operation)
        for tensor in () if operation.type.endswith(_FUNCTIONS) else operation.inputs:
            if tensor.dtype == tf.resource and tensor.op.device:
                # What reads or writes a variable must stand where it does.
                return str(tensor.op.device)
        return device

    def place(operation: tf.Operation) -> str:
        # TensorFlow leaves it to a device function to heed what a `tf.device` inside of it says.
        if not operation.device:
            return choose(operation)
        wanted = tf.DeviceSpec.from_string(operation.device)
        if wanted.job is not None:
            return str(operation.device)
        return str(tf.DeviceSpec.from_string(choose(operation)).make_merged_spec(wanted).to_string())

    return place
