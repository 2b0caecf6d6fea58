"""Which strategy the flags, the devices and the role lead to, and what is refused."""

from __future__ import annotations

import pytest

import moxing.tensorflow as mox
from moxing.tensorflow.cluster import Role
from moxing.tensorflow.parallel.choice import choose_strategy
from moxing.tensorflow.parallel.collective import Collective
from moxing.tensorflow.parallel.dgc import Dgc
from moxing.tensorflow.parallel.local import Local
from moxing.tensorflow.parallel.parameter_server import ParameterServer
from moxing.tensorflow.parallel.replicated import Replicated
from moxing.tensorflow.parallel.strategy import find_strategy

WORKERS = ("a:1", "b:1")
ALONE = Role()
WITH_PS = Role("worker", 1, WORKERS, ps=("c:1", "d:1"))
WITHOUT_PS = Role("worker", 1, WORKERS)


@pytest.mark.parametrize(
    ("role", "flags", "kind"),
    [
        (ALONE, {}, Local),
        (ALONE, {"num_gpus": 2}, Local),
        (ALONE, {"num_gpus": 2, "variable_update": "parameter_server"}, Local),
        (ALONE, {"num_gpus": 2, "variable_update": "replicated"}, Replicated),
        (ALONE, {"num_gpus": 2, "variable_update": "replicated_host"}, Replicated),
        (WITH_PS, {}, ParameterServer),
        (WITH_PS, {"variable_update": "parameter_server"}, ParameterServer),
        (WITH_PS, {"variable_update": "collective"}, Collective),
        (WITHOUT_PS, {}, Collective),
        (WITHOUT_PS, {"variable_update": "collective", "num_gpus": 2}, Collective),
        (WITHOUT_PS, {"variable_update": "distributed_replicated_dgc", "dgc_momentum": 0.9}, Dgc),
        (WITH_PS, {"variable_update": "distributed_replicated_dgc", "min_size_in_kb": 9}, Dgc),
    ],
)
def test_the_strategy_of_training(role, flags, kind):
    for name, value in flags.items():
        mox.set_flag(name, value)
    strategy = choose_strategy(True, role, 3)
    assert type(strategy) is kind
    assert strategy.num_towers == flags.get("num_gpus", 1)
    assert (strategy.num_workers, strategy.worker_index) == ((2, 1) if role.is_cluster else (1, 0))
    assert strategy.is_chief == (not role.is_cluster)


@pytest.mark.parametrize("sync", [True, False])
def test_sync_replicas(sync):
    mox.set_flag("sync_replicas", sync)
    assert choose_strategy(True, WITH_PS).synchronous is sync


def test_without_training_the_towers_share_the_variables():
    mox.set_flag("num_gpus", 2)
    mox.set_flag("variable_update", "replicated")
    assert type(choose_strategy(False, ALONE)) is Local


@pytest.mark.parametrize("update", ["collective", "distributed_replicated", "distributed_replicated_dgc"])
def test_the_chief_evaluates_alone_with_the_flags_of_the_training(update):
    mox.set_flag("variable_update", update)
    assert type(choose_strategy(False, ALONE)) is Local


@pytest.mark.parametrize(
    ("role", "update", "message"),
    [
        (ALONE, "collective", "--variable_update=collective is for a cluster: give --worker_hosts"),
        (ALONE, "distributed_replicated", "--variable_update=distributed_replicated is for a cluster"),
        (ALONE, "distributed_replicated_dgc", "--variable_update=distributed_replicated_dgc is for a cluster"),
        (WITH_PS, "replicated", "--variable_update=replicated is for one machine: .* parameter_server, or collective"),
        (WITHOUT_PS, "replicated_host", "--variable_update=replicated_host is for one machine"),
        (WITHOUT_PS, "parameter_server", "--variable_update=parameter_server needs parameter servers: give --ps_hosts"),
    ],
)
def test_what_does_not_go_together(role, update, message):
    mox.set_flag("variable_update", update)
    with pytest.raises(ValueError, match=message):
        choose_strategy(True, role)


@pytest.mark.parametrize("update", [None, "collective", "parameter_server"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dgc_sparsity_strategy", "0.75,0.9"),
        ("dgc_momentum_type", "vanilla"),
        ("dgc_momentum", 0.9),
        ("dgc_momentum_factor_masking", False),
        ("dgc_total_samples", 100),
        ("min_size_in_kb", 1),
    ],
)
def test_flags_of_compression_without_it(update, name, value):
    mox.set_flag("variable_update", update)
    mox.set_flag(name, value)
    with pytest.raises(ValueError, match=f"--{name}={value} is a flag of --variable_update=distributed_replicated_dgc"):
        choose_strategy(True, WITH_PS)


@pytest.mark.parametrize("update", [None, "collective", "distributed_replicated_dgc"])
def test_without_ps_there_is_only_in_step(update):
    assert choose_strategy(True, WITHOUT_PS).synchronous
    mox.set_flag("variable_update", update)
    mox.set_flag("sync_replicas", False)
    with pytest.raises(ValueError, match="--sync_replicas=False needs parameter servers"):
        choose_strategy(True, WITHOUT_PS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("variable_update", "auto"),
        ("variable_update", "distributed_replicated_mix"),
        ("var_space_starter", 3),
        ("var_mix_offset", 3),
        ("warmup_steps", 5),
    ],
)
def test_what_is_not_there_yet_is_not_ignored(name, value):
    mox.set_flag(name, value)
    with pytest.raises(NotImplementedError, match=f"--{name}={value}: not available in this version"):
        choose_strategy(True, WITH_PS)


# --- the registry ---------------------------------------------------------------------------------------------------


def test_every_registered_name_is_a_value_of_the_flag():
    for name in ("parameter_server", "replicated", "replicated_host"):
        assert find_strategy(name, cluster=False) is not None
        mox.set_flag("variable_update", name)
    for name in ("parameter_server", "distributed_replicated", "collective", "distributed_replicated_dgc"):
        assert find_strategy(name, cluster=True) is not None
        mox.set_flag("variable_update", name)
    assert find_strategy("collective", cluster=False) is find_strategy("replicated", cluster=True) is None
