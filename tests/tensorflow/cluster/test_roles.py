"""What a role says of its process and of the others."""

from __future__ import annotations

import re

import pytest

from moxing.tensorflow.cluster import Role, RoleError
from moxing.tensorflow.cluster.roles import check_addresses, check_index, check_role, split_address

TWO = ("a:1", "b:1")


def test_an_evaluator_has_no_peers_and_is_nobodys():
    role = Role("evaluator", workers=("a:1", "b:1"), ps=("c:1",))
    assert (role.peers, role.address, role.is_chief) == ({}, None, False)
    assert not any("evaluator" in name for name in Role(workers=("a:1", "b:1")).peers)


def test_a_role_of_a_cluster():
    role = Role("ps", 1, workers=("a:1", "b:1"), ps=("c:1", "d:1"), controller="e:1")
    assert (role.name, role.address, role.is_chief, role.num_workers) == ("ps 1", "d:1", False, 2)
    assert list(role.peers) == ["worker 0", "worker 1", "ps 0", "controller"]
    assert role.spec == {"worker": ["a:1", "b:1"], "ps": ["c:1", "d:1"], "controller": ["e:1"]}


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_out_of_range(index):
    with pytest.raises(RoleError, match=rf"--x={index}: --hosts has 2 hosts \(a,b\), expected 0 to 1\."):
        check_index("--x", index, "--hosts", ["a", "b"])


def test_addresses():
    check_addresses({"--a": ["a:1", "a:2"], "--b": ["b:1"]})
    assert split_address("a:65535") == ("a", 65535)
    with pytest.raises(RoleError, match="--b=b: 'b' has no port"):
        check_addresses({"--a": ["a:1"], "--b": ["b"]})


@pytest.mark.parametrize(
    "role",
    [
        Role(),
        Role(workers=("a",)),  # runs alone: no port needed
        Role("worker", 1, TWO),
        Role("ps", 0, TWO, ("c:1",)),
        Role("controller", 0, TWO, controller="c:1"),
        Role("evaluator", 7),
    ],
)
def test_a_valid_role_of_an_environment(role):
    assert check_role("acme", role) == role


@pytest.mark.parametrize(
    ("role", "message"),
    [
        (("worker", 0), "('worker', 0); expected a Role, or None outside of the environment."),
        (Role("chief"), "Role(job='chief'): expected one of worker, ps, controller, evaluator. The chief is worker 0."),
        (Role("workers"), "Role(job='workers'): expected one of"),
        (Role(workers="a:1,b:1"), "Role(workers='a:1,b:1'): expected a tuple of host:port strings."),
        (Role(workers=TWO, ps="c:1"), "Role(ps='c:1'): expected a tuple of host:port strings."),
        (Role(workers=("a:1", 2)), "Role(workers=('a:1', 2)): expected a tuple of host:port strings."),
        (Role("worker", "1", TWO), "Role(index='1'): expected an integer."),
        (Role("worker", 2, TWO), "Role(job='worker', index=2) with 2 workers: expected an index from 0 to 1."),
        (Role("worker", -1, TWO), "Role(job='worker', index=-1) with 2 workers: expected an index from 0 to 1."),
        (Role("worker", 3), "Role(job='worker', index=3) with 1 worker: expected index=0."),
        (Role("ps", 0, TWO), "Role(job='ps', index=0) with 0 ps: expected the host:port of this process in ps."),
        (
            Role("ps", 0, (), ("c:1",)),
            "a Role with ps or controller and workers=(): expected all host:port of workers.",
        ),
        (Role(workers=("a", "b:1")), "a Role with a wrong address: workers=a,b:1: 'a' has no port; expected host:port"),
        (Role(workers=("a:1", "a:1")), "a Role with a wrong address: workers: a:1 is listed twice"),
    ],
)
def test_a_wrong_role_of_an_environment(role, message):
    with pytest.raises(RoleError, match=re.escape(f"The cluster environment 'acme' returned {message}")):
        check_role("acme", role)
