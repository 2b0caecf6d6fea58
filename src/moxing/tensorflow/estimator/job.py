"""The job of an Estimator: TF_CONFIG, which Estimators read, from the role that MoXing's flags define."""

from __future__ import annotations

import json
import os

from moxing.tensorflow.cluster import current_role
from moxing.tensorflow.cluster.roles import Role


def set_tf_config() -> None:
    """Sets TF_CONFIG in a job that was started with flags, such as one of `moxing run --workers 2 --ps 1`."""
    role = current_role()
    if role.ps and not os.environ.get("TF_CONFIG"):
        os.environ["TF_CONFIG"] = tf_config(role)


def tf_config(role: Role) -> str:
    """The text of TF_CONFIG for a role. Worker 0 is the chief.

    Example:
      >>> print(tf_config(Role('worker', 1, ('a:1', 'b:1'), ('c:1',))))
      {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "task": {"type": "worker", "index": 0}}
    """
    cluster = {"chief": list(role.workers[:1]), "worker": list(role.workers[1:]), "ps": list(role.ps)}
    task = {"type": role.job, "index": role.index}
    if role.job == "worker":
        task = {"type": "worker", "index": role.index - 1} if role.index else {"type": "chief", "index": 0}
    return json.dumps({"cluster": {job: hosts for job, hosts in cluster.items() if hosts}, "task": task})


def check_job() -> None:
    """Refuses a job without parameter servers, in which every worker would train a model of its own."""
    role = current_role()
    if len(role.workers) > 1 and not role.ps:
        raise ValueError(
            f"Estimator.train in a job of {len(role.workers)} workers without parameter servers: an Estimator keeps "
            "its variables on parameter servers. Start it with `moxing run --workers 2 --ps 1`, or give --ps_hosts."
        )
