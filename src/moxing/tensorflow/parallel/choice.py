"""Which strategy a run takes."""

from __future__ import annotations

from moxing.framework.flags import FLAGS, FlagError, FlagNotAvailableError
from moxing.tensorflow.cluster.roles import Role
from moxing.tensorflow.optimizer.easgd import NEEDS
from moxing.tensorflow.parallel.collective import Collective, Connect, not_connected
from moxing.tensorflow.parallel.devices import tower_devices
from moxing.tensorflow.parallel.dgc import Dgc
from moxing.tensorflow.parallel.easgd import Easgd
from moxing.tensorflow.parallel.local import Local
from moxing.tensorflow.parallel.parameter_server import ParameterServer
from moxing.tensorflow.parallel.replicated import Replicated
from moxing.tensorflow.parallel.strategy import Strategy

#: Flags of gradient compression.
_OF_DGC = (
    "dgc_sparsity_strategy",
    "dgc_momentum_type",
    "dgc_momentum",
    "dgc_momentum_factor_masking",
    "dgc_total_samples",
    "min_size_in_kb",
)
#: Flags of `distributed_replicated_mix`, of which no more than these names is known.
_NOT_YET = ("var_space_starter", "var_mix_offset")
_DGC = "distributed_replicated_dgc"

_ONE_MACHINE = ("replicated", "replicated_host")


def choose_strategy(
    training: bool, role: Role, run: int = 0, ring: Connect = not_connected, elastic: bool = False
) -> Strategy:
    """The strategy that the flags ask for, or the best one for the devices.

    Args:
      training: false: there are no gradients, and all towers can share the variables.
      role: this process's.
      run: number of the run in this process.
      ring: connects the workers, for what they add up.
      elastic: every worker has variables of its own, see `EasgdOptimizer`.
    """
    _refuse_what_is_missing()
    devices = tower_devices()
    update = FLAGS.get("variable_update")
    if role.is_cluster and elastic:
        return _elastic(update, devices, role, run)
    if role.is_cluster:
        return _in_cluster(update, devices, role, run, ring)
    # The chief of a cluster evaluates alone, with the flags of the training.
    if training and update is not None and update.startswith(("distributed_", "collective")):
        raise FlagError(
            f"--variable_update={update} is for a cluster: give --worker_hosts, or start it with `moxing run --workers "
            "N`, or leave it out."
        )
    if len(devices) == 1 or not training or update == "parameter_server":
        return Local(devices)
    if update in _ONE_MACHINE:
        return Replicated(devices, on_host=update == "replicated_host")
    # On one CPU copies of the variables would only take time.
    return Local(devices) if devices[0].startswith("/cpu") else Replicated(devices)


def _in_cluster(update: str | None, devices: list[str], role: Role, run: int, ring: Connect) -> Strategy:
    if update in _ONE_MACHINE:
        raise FlagError(
            f"--variable_update={update} is for one machine: in a cluster use parameter_server, or collective."
        )
    if FLAGS.get("local_parameter_device") == "gpu":
        raise FlagError("--local_parameter_device=gpu is for one machine: in a cluster leave it out.")
    if update in ("collective", _DGC) or (update is None and not role.ps):
        if not FLAGS.get("sync_replicas"):
            raise FlagError("--sync_replicas=False needs parameter servers: collective workers go in step.")
        kind = Dgc if update == _DGC else Collective
        return kind(devices, role.num_workers, role.index, run, ring)
    if not role.ps:
        raise FlagError(f"--variable_update={update} needs parameter servers: give --ps_hosts, or use collective.")
    in_step = FLAGS.get("sync_replicas")
    return ParameterServer(devices, role.num_workers, role.index, run, servers=len(role.ps), in_step=in_step)


def _elastic(update: str | None, devices: list[str], role: Role, run: int) -> Strategy:
    words = "get_optimizer_wrapper_fn('easgd', ...)"
    if not role.ps:
        raise FlagError(f"{words} needs {NEEDS}: give --ps_hosts, or `moxing run --workers N --ps 1`.")
    if FLAGS.get("sync_replicas"):
        raise FlagError(f"{words} needs {NEEDS}: give --sync_replicas=False; workers that go in step are all equal.")
    if update not in (None, "parameter_server"):
        raise FlagError(f"{words} with --variable_update={update}: it needs {NEEDS}, and parameter_server there.")
    if FLAGS.get("local_parameter_device") == "gpu":
        raise FlagError("--local_parameter_device=gpu is for one machine: in a cluster leave it out.")
    return Easgd(devices, role.num_workers, role.index, run, servers=len(role.ps))


def _refuse_what_is_missing() -> None:
    for name in _NOT_YET:
        if FLAGS.get(name) is not None:
            raise FlagNotAvailableError(f"--{name}={FLAGS.get(name)}: not available in this version; leave it out.")
    update = FLAGS.get("variable_update")
    if update == "distributed_replicated_mix":
        raise FlagNotAvailableError(
            f"--variable_update={update}: not available in this version; {_DGC} compresses gradients."
        )
    for name in _OF_DGC:
        if FLAGS.get(name) is not None and update != _DGC:
            raise FlagError(f"--{name}={FLAGS.get(name)} is of --variable_update={_DGC}: give both, or leave it out.")
    if update == "auto":
        raise FlagNotAvailableError(f"--variable_update={update}: not available in this version; leave it out.")
    if FLAGS.get("warmup_steps"):
        raise FlagNotAvailableError(
            f"--warmup_steps={FLAGS.get('warmup_steps')}: not available in this version; leave it out."
        )
