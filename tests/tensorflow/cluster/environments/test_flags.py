"""Roles by the flags, and errors at the start for what cannot be meant."""

from __future__ import annotations

import pytest

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import Role, current_role
from moxing.tensorflow.cluster.roles import RoleError

WORKERS, PS = "10.0.0.1:2222,10.0.0.2:2222", "10.0.0.3:2222,10.0.0.3:2223"


def role_of(**flags) -> Role:
    FLAGS.reset()
    for name, value in flags.items():
        FLAGS.set(name, value)
    return current_role()


def error_of(**flags) -> str:
    with pytest.raises(RoleError) as caught:
        role_of(**flags)
    return str(caught.value)


def test_a_process_without_flags_is_alone():
    role = current_role()
    assert role == Role()
    assert (role.is_cluster, role.is_chief, role.num_workers, role.name) == (False, True, 1, "worker 0")
    assert (role.address, role.peers, role.spec) == (None, {}, {})


def test_the_command_lines_of_the_manual():
    for job, index, address in [
        ("ps", 0, "10.0.0.3:2222"),
        ("ps", 1, "10.0.0.3:2223"),
        ("worker", 0, "10.0.0.1:2222"),
        ("worker", 1, "10.0.0.2:2222"),
    ]:
        role = role_of(ps_hosts=PS, worker_hosts=WORKERS, job_name=job, task_index=index)
        assert (role.job, role.index, role.address) == (job, index, address)
        assert role.is_cluster and role.num_workers == 2
        assert role.is_chief == (job == "worker" and index == 0)
        assert role.name == f"{job} {index}"
        assert role.spec == {"worker": WORKERS.split(","), "ps": PS.split(",")}
        assert len(role.peers) == 3 and role.name not in role.peers
        assert role.origin == f"--{job}_hosts"


def test_peers_have_names_and_addresses():
    role = role_of(ps_hosts="c:1", worker_hosts="a:1, b:1,", job_name="worker", task_index=0)
    assert role.peers == {"worker 1": "b:1", "ps 0": "c:1"}


def test_a_job_with_a_controller():
    flags = {"worker_hosts": WORKERS, "controller_host": "10.0.0.9:2222"}
    role = role_of(**flags, job_name="controller")
    assert (role.name, role.address, role.is_chief) == ("controller", "10.0.0.9:2222", False)
    assert role.spec["controller"] == ["10.0.0.9:2222"]
    worker = role_of(**flags, job_name="worker", task_index=1)
    assert worker.peers == {"worker 0": "10.0.0.1:2222", "controller": "10.0.0.9:2222"}


@pytest.mark.parametrize(
    "flags", [{"job_name": "worker"}, {"worker_hosts": "localhost:2222"}, {"worker_hosts": "here"}]
)
def test_one_worker_is_no_cluster(flags):
    assert not role_of(**flags).is_cluster


def test_one_worker_with_a_ps_or_a_controller_is_a_cluster():
    assert role_of(worker_hosts="a:1", ps_hosts="b:1", job_name="worker").is_cluster
    assert role_of(worker_hosts="a:1", ps_hosts="", controller_host="b:1", job_name="worker").is_cluster


def test_index_out_of_range_names_the_list():
    message = error_of(ps_hosts=PS, worker_hosts=WORKERS, job_name="worker", task_index=2)
    assert message == f"--task_index=2: --worker_hosts has 2 hosts ({WORKERS}), expected 0 to 1."
    assert "--ps_hosts has 2 hosts" in error_of(ps_hosts=PS, worker_hosts=WORKERS, job_name="ps", task_index=-1)
    assert "--worker_hosts has 1 host (a:1), expected 0." in error_of(ps_hosts="", worker_hosts="a:1", task_index=1)
    assert "--task_index=3 without --worker_hosts" in error_of(worker_hosts="", job_name="worker", task_index=3)


@pytest.mark.parametrize(
    ("workers", "ps", "message"),
    [
        ("a:1,b:1,a:1", "c:1", "--worker_hosts: a:1 is listed twice"),
        ("a:1,b:1", "c:1,C:1", "--ps_hosts: C:1 is listed twice"),
        ("a:1,b:1", "c:1,b:1", "--ps_hosts: b:1 is in --worker_hosts too"),
        ("a:1,b", "c:1", "--worker_hosts=a:1,b: 'b' has no port; expected host:port, such as b:2222"),
        ("a:1,b:x", "c:1", "'b:x' has the port 'x'; expected a number from 1 to 65535"),
        ("a:1,b:0", "c:1", "'b:0' has the port '0'"),
        ("a:1,b:70000", "c:1", "'b:70000' has the port '70000'"),
        ("a:1,:2", "c:1", "':2' has no host; expected host:port, such as localhost:2"),
        ("a:1,,b:1", "c:1", "'' has no port"),
        ("a:1,fd00::2", "c:1", "write an IPv6 address in brackets"),
        ("a:1,[fd00::2]", "c:1", "'[fd00::2]' has no port; expected host:port, such as [fd00::2]:2222"),
    ],
)
def test_addresses_that_cannot_be_used(workers, ps, message):
    assert message in error_of(worker_hosts=workers, ps_hosts=ps, job_name="worker")


def test_ipv6_hosts_stand_in_brackets():
    role = role_of(worker_hosts="[fd00::1]:1,[fd00::2]:1", job_name="worker", task_index=1)
    assert role.address == "[fd00::2]:1"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"job_name": "master"}, "--job_name=master: expected one of ps, worker, controller, evaluator."),
        ({"job_name": "wroker"}, "expected one of ps, worker, controller, evaluator. Did you mean 'worker'?"),
        ({"job_name": "ps", "worker_hosts": WORKERS}, "--job_name=ps without --ps_hosts"),
        ({"job_name": "ps"}, "--job_name=ps without --ps_hosts"),
        ({"job_name": "controller", "worker_hosts": WORKERS}, "--job_name=controller without --controller_host"),
        ({"job_name": "ps", "ps_hosts": PS}, f"--ps_hosts={PS} without --worker_hosts"),
        ({"job_name": "worker", "controller_host": "a:1"}, "--controller_host=a:1 without --worker_hosts"),
        ({"worker_hosts": WORKERS}, f"--worker_hosts={WORKERS} is a cluster: give --job_name"),
        ({"worker_hosts": "a:1", "ps_hosts": "b:1"}, "--worker_hosts=a:1 --ps_hosts=b:1 is a cluster"),
        ({"worker_hosts": WORKERS, "controller_host": "a:1,b:1", "job_name": "worker"}, "--controller_host=a:1,b:1"),
    ],
)
def test_roles_that_cannot_be_meant(flags, message):
    assert message in error_of(**flags)
