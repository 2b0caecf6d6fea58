"""Roles from Slurm's variables, and its short forms of lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moxing.tensorflow.cluster.environments import slurm
from moxing.tensorflow.cluster.roles import RoleError

#: What `srun` sets for task 3 of a step of 5 on 3 nodes.
STEP = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_NTASKS": "5",
    "SLURM_STEP_NUM_TASKS": "5",
    "SLURM_JOB_NODELIST": "n[07-12]",
    "SLURM_STEP_NODELIST": "n[08-09,11]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
    "SLURM_TASKS_PER_NODE": "2(x6)",
}


@pytest.fixture
def detect(monkeypatch):
    def with_variables(without=(), **changes):
        for name, value in {**STEP, **changes}.items():
            monkeypatch.setenv(name, value)
        for name in without:
            monkeypatch.delenv(name, raising=False)
        return slurm.detect()

    return with_variables


def ports(role):
    return [int(address.split(":")[1]) for address in role.workers]


def test_outside_of_slurm():
    assert slurm.detect() is None


def test_all_tasks_are_workers(detect):
    role = detect()
    assert (role.name, role.origin, role.ps, role.controller) == ("worker 3", "SLURM_STEP_NODELIST", (), None)
    assert [address.split(":")[0] for address in role.workers] == ["n08", "n08", "n09", "n09", "n11"]
    assert len(set(role.workers)) == 5
    assert ports(role)[1] == ports(role)[0] + 1 and ports(role)[2] == ports(role)[0]


def test_every_task_sees_the_same_workers(detect):
    places = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    roles = [
        detect(SLURM_PROCID=str(task), SLURM_NODEID=str(node), SLURM_LOCALID=str(local))
        for task, (node, local) in enumerate(places)
    ]
    assert len({role.workers for role in roles}) == 1
    assert [role.index for role in roles] == [0, 1, 2, 3, 4]


def test_ports_differ_between_jobs_and_steps_and_stay_below_those_of_the_kernel(detect):
    one, next_job = ports(detect()), ports(detect(SLURM_JOB_ID="4712"))
    next_step = ports(detect(SLURM_STEP_ID="1"))
    assert not set(one) & set(next_job) and not set(one) & set(next_step) and not set(next_job) & set(next_step)
    for job in range(0, 3000, 7):
        assert all(1024 < port < 32768 for port in ports(detect(SLURM_JOB_ID=str(job), SLURM_STEP_ID=str(job % 11))))


def test_a_batch_script_is_not_a_task_of_srun(detect):
    # As in a batch script with --ntasks=5: it is there once, and has SLURM_PROCID=0 all the same.
    step = [name for name in STEP if name.startswith("SLURM_STEP_")]
    assert detect(without=step, SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_NODEID="0") is None


def test_the_shell_of_salloc_is_not_a_task_of_srun(detect):
    assert detect(SLURM_STEP_ID="4294967290", SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_NODEID="0") is None


@pytest.mark.parametrize("changes", [{"SLURM_STEP_NUM_TASKS": "1"}, {"SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": ""}])
def test_one_task_is_no_cluster(detect, changes):
    assert detect(**changes) is None


def test_the_job_fills_in_for_the_step(detect):
    role = detect(
        without=["SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"],
        SLURM_NTASKS="12",
        SLURM_PROCID="3",
    )
    assert role.origin == "SLURM_JOB_NODELIST" and role.num_workers == 12
    assert role.workers[-1].startswith("n12:")


def test_without_tasks_per_node_only_the_clear_cases(detect):
    without = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NODEID", "SLURM_LOCALID"]
    with pytest.raises(RoleError, match="SLURM_STEP_TASKS_PER_NODE is not set: 5 tasks on 3 nodes"):
        detect(without)
    one_each = detect(without, SLURM_STEP_NUM_TASKS="3", SLURM_PROCID="2")
    assert [address.split(":")[0] for address in one_each.workers] == ["n08", "n09", "n11"]
    one_node = detect(without, SLURM_STEP_NODELIST="login1")
    assert len(set(one_node.workers)) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3)"}, r"SLURM_STEP_TASKS_PER_NODE=2\(x3\) says 6 tasks on 3 nodes"),
        ({"SLURM_STEP_NODELIST": "n[1-2]"}, r"SLURM_STEP_NODELIST=n\[1-2\] has 2 nodes"),
        ({"SLURM_NODEID": "0"}, "SLURM_NODEID=0 of task 3: expected 1.*--distribution=block"),
        ({"SLURM_LOCALID": "0"}, "SLURM_LOCALID=0 of task 3: expected 1"),
        ({"SLURM_PROCID": "5"}, "SLURM_PROCID=5 with 5 tasks"),
        ({"SLURM_PROCID": "x"}, "SLURM_PROCID=x: expected a number"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2x3"}, "SLURM_STEP_TASKS_PER_NODE=2x3: expected counts"),
    ],
)
def test_variables_that_do_not_fit(detect, changes, message):
    with pytest.raises(RoleError, match=message):
        detect(**changes)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[01-04,07]", ["n01", "n02", "n03", "n04", "n07"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("gpu-[1-2]-ib[0-1]", ["gpu-1-ib0", "gpu-1-ib1", "gpu-2-ib0", "gpu-2-ib1"]),
        ("a,b[1-3],c", ["a", "b1", "b2", "b3", "c"]),
        ("n[1,3-4].site.org,x", ["n1.site.org", "n3.site.org", "n4.site.org", "x"]),
        ("r[1-2]n[1,3],s[5]", ["r1n1", "r1n3", "r2n1", "r2n3", "s5"]),
    ],
)
def test_short_forms_of_host_lists(text, hosts):
    assert slurm.expand_hosts(text) == hosts


@pytest.mark.parametrize("text", ["", " ", "n[1-2", "n1-2]", "n[]", "n[4-2]", "n[a-b]", "n[1-]", "n[[1-2]]"])
def test_host_lists_that_cannot_be_read(text):
    with pytest.raises(RoleError, match="SLURM_JOB_NODELIST="):
        slurm.expand_hosts(text)


_NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,5}", fullmatch=True)
_RANGES = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=3
)  # begin, how many more, digits
_ITEMS = st.tuples(_NAMES, st.one_of(st.none(), _RANGES), st.sampled_from(["", "-ib", ".site"]))


@given(st.lists(_ITEMS, min_size=1, max_size=5))
def test_any_host_list_comes_back(items):
    texts, hosts = [], []
    for name, ranges, end in items:
        if ranges is None:
            texts.append(name)
            hosts.append(name)
            continue
        parts = []
        for begin, more, digits in ranges:
            # Slurm writes the width of the first number; the last one may be longer.
            parts.append(f"{begin:0{digits}}-{begin + more:0{digits}}" if more else f"{begin:0{digits}}")
            width = len(f"{begin:0{digits}}")
            hosts += [name + str(number).rjust(width, "0") + end for number in range(begin, begin + more + 1)]
        texts.append(f"{name}[{','.join(parts)}]{end}")
    assert slurm.expand_hosts(",".join(texts)) == hosts


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(1, 5)), min_size=1, max_size=5))
def test_any_counts_come_back(groups):
    text = ",".join(f"{count}(x{nodes})" if nodes > 1 else str(count) for count, nodes in groups)
    assert slurm.expand_counts(text) == [count for count, nodes in groups for _ in range(nodes)]
