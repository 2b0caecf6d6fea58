"""Picks the strategy of a run, by `--variable_update` and by the devices and the role of this process."""

from __future__ import annotations

from moxing.framework.flags import FLAGS, FlagError, FlagNotAvailableError
from moxing.tensorflow.cluster import Role
from moxing.tensorflow.optimizer.wrappers.easgd import NEEDS
from moxing.tensorflow.parallel.devices import tower_devices
from moxing.tensorflow.parallel.easgd import Easgd
from moxing.tensorflow.parallel.local import Local
from moxing.tensorflow.parallel.strategy import ConnectRing, Strategy, StrategyContext, find_strategy, no_ring

_DGC = "distributed_replicated_dgc"
#: Flags of gradient compression.
_DGC_FLAGS = (
    "dgc_sparsity_strategy",
    "dgc_momentum_type",
    "dgc_momentum",
    "dgc_momentum_factor_masking",
    "dgc_total_samples",
    "min_size_in_kb",
)
#: Flags of `distributed_replicated_mix`, which the original's manual names without explaining them.
UNAVAILABLE_FLAGS = ("var_space_starter", "var_mix_offset")


def choose_strategy(
    training: bool, role: Role, run: int = 0, connect_ring: ConnectRing = no_ring, elastic: bool = False
) -> Strategy:
    """Returns the strategy that `--variable_update` names, or the default for the devices and the role.

    Args:
      training: False: there are no gradients, and all towers share the variables.
      role: the role of this process.
      run: number of the run in this process.
      connect_ring: connects all workers to a ring for all-reduce.
      elastic: True: every worker trains variables of its own, see `EasgdOptimizer`.
    """
    _check_flags()
    name = FLAGS.get("variable_update")
    if not role.is_cluster:
        return _on_one_machine(training, name, role, run)
    devices = tower_devices()
    if elastic:
        return _elastic(name, StrategyContext("easgd", devices, role, run))
    default = "parameter_server" if role.ps else "collective"
    return _in_cluster(StrategyContext(name or default, devices, role, run, connect_ring))


def _on_one_machine(training: bool, name: str | None, role: Role, run: int) -> Strategy:
    devices = tower_devices()
    # On one CPU copies of the variables only take time.
    default = "replicated" if devices[0].startswith("/gpu") else "parameter_server"
    context = StrategyContext(name or default, devices, role, run)
    if not training:
        # Also for the chief of a cluster, which evaluates alone with the flags of the training.
        return Local.create(context)
    strategy = find_strategy(context.name, cluster=False)
    if strategy is None:
        raise FlagError(
            f"--variable_update={context.name} is for a cluster: give --worker_hosts, or start the script with `moxing "
            "run --workers N`, or leave --variable_update out."
        )
    return strategy.create(context)


def _in_cluster(context: StrategyContext) -> Strategy:
    strategy = find_strategy(context.name, cluster=True)
    if strategy is None:
        raise FlagError(
            f"--variable_update={context.name} is for one machine: in a cluster use parameter_server, or collective."
        )
    _check_parameter_device()
    return strategy.create(context)


def _elastic(name: str | None, context: StrategyContext) -> Strategy:
    words = "get_optimizer_wrapper_fn('easgd', ...)"
    if not context.role.ps:
        raise FlagError(f"{words} needs {NEEDS}: give --ps_hosts, or `moxing run --workers N --ps 1`.")
    if FLAGS.get("sync_replicas"):
        raise FlagError(f"{words} needs {NEEDS}: give --sync_replicas=False; synchronous workers are always equal.")
    if name not in (None, "parameter_server"):
        raise FlagError(f"{words} needs {NEEDS}: give --variable_update=parameter_server instead of {name}.")
    _check_parameter_device()
    return Easgd.create(context)


def _check_parameter_device() -> None:
    if FLAGS.get("local_parameter_device") == "gpu":
        raise FlagError("--local_parameter_device=gpu is for one machine: in a cluster leave it out.")


def _check_flags() -> None:
    """Raises an error for flags that are not available in this version, or that need another flag."""
    for name in UNAVAILABLE_FLAGS:
        if FLAGS.get(name) is not None:
            raise FlagNotAvailableError(f"--{name}={FLAGS.get(name)}: not available in this version; leave it out.")
    update = FLAGS.get("variable_update")
    if update == "distributed_replicated_mix":
        raise FlagNotAvailableError(
            f"--variable_update={update}: not available in this version; {_DGC} compresses gradients."
        )
    for name in _DGC_FLAGS:
        if FLAGS.get(name) is not None and update != _DGC:
            raise FlagError(
                f"--{name}={FLAGS.get(name)} is a flag of --variable_update={_DGC}: give both, or leave it out."
            )
    if update == "auto":
        raise FlagNotAvailableError(f"--variable_update={update}: not available in this version; leave it out.")
    if FLAGS.get("warmup_steps"):
        raise FlagNotAvailableError(
            f"--warmup_steps={FLAGS.get('warmup_steps')}: not available in this version; leave it out."
        )
