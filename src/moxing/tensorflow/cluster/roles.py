"""The role of this process. In this version there is one: a single worker with a single device."""

from __future__ import annotations

from moxing.framework.flags import FLAGS

#: Flags that ask for something this version does not have, by the value that asks for nothing.
_NOT_YET = {
    "warmup_steps": 0,
    "controller_host": "",
    "dgc_sparsity_strategy": None,
    "dgc_momentum_type": None,
    "dgc_momentum": None,
    "dgc_momentum_factor_masking": None,
    "dgc_total_samples": None,
    "min_size_in_kb": None,
    "var_space_starter": None,
    "var_mix_offset": None,
}


def require_one_device() -> None:
    """Raises an error where the flags ask for several devices, a cluster, or what is not there yet.

    Example:
      >>> require_one_device()
    """
    gpus = FLAGS.get("num_gpus")
    if gpus < 1:
        raise ValueError(f"--num_gpus={gpus}: expected 1; on a CPU leave the flag out.")
    if gpus > 1:
        raise NotImplementedError(f"--num_gpus={gpus}: several devices are not available in this version; use 1.")
    _refuse_cluster()
    for name, nothing in _NOT_YET.items():
        value = FLAGS.get(name)
        if value != nothing:
            raise NotImplementedError(f"--{name}={value}: not available in this version; leave the flag out.")
    update = FLAGS.get("variable_update") or ""
    if update.startswith(("distributed_", "collective", "auto")):
        raise NotImplementedError(f"--variable_update={update}: needs several devices; not available in this version.")


def _refuse_cluster() -> None:
    job = FLAGS.get("job_name")
    if job not in ("", "worker"):
        raise NotImplementedError(f"--job_name={job}: clusters are not available in this version; run one process.")
    for name in ("ps_hosts", "worker_hosts"):
        hosts = [host for host in FLAGS.get(name).split(",") if host]
        if len(hosts) > (1 if name == "worker_hosts" else 0):
            raise NotImplementedError(
                f"--{name}={','.join(hosts)}: clusters are not available in this version; run one process without it."
            )
    if FLAGS.get("task_index"):
        raise NotImplementedError(f"--task_index={FLAGS.get('task_index')}: this version runs one worker, number 0.")
