"""MoXing's own flags: read from anywhere on the command line, shared with the script's, errors that help."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import moxing.tensorflow as mox
from moxing.framework.flags import FLAGS, Flag, FlagError, FlagNotAvailableError, FlagRegistry, ScriptFlagError
from moxing.tensorflow.utils.hyper_param_flags import mox_flags


def parsed(*words):
    registry = FlagRegistry(FLAGS.flags)
    registry.parse(list(words))
    return registry


def test_defaults_need_no_command_line():
    assert mox.get_flag("num_gpus") + 1 == 2
    assert len(mox.get_flag(flag_name="worker_hosts").split(",")) >= 1
    assert mox.get_flag("sync_replicas") is True


def test_read_from_the_process_command_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--data_url=x", "--num_gpus=4", "-loss_scale", "8", "rest"])
    FLAGS.reset()
    assert mox.get_flag("num_gpus") == 4
    assert mox.get_flag("loss_scale") == 8.0


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--sync_replicas"], True),
        (["--sync_replicas=False"], False),
        (["--sync_replicas", "False"], False),
        (["--nosync_replicas"], False),
        (["--sync_replicas=no"], False),
        (["--sync_replicas", "train.py"], True),
    ],
)
def test_booleans(words, value):
    assert parsed(*words).get("sync_replicas") is value


def test_what_is_not_ours_is_left_alone():
    registry = parsed("--unknown", "1", "-x", "--", "--num_gpus=3")
    assert registry.get("num_gpus") == 1
    assert registry.strip(["--lr=1", "--num_gpus", "2", "--sync_replicas", "file"]) == ["--lr=1", "file"]
    assert registry.strip(["--num_gpus=2"], keep=lambda name: name == "num_gpus") == ["--num_gpus=2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--num_gpus=two"], "--num_gpus='two': expected an integer"),
        (["--num_gpus=1.5"], "--num_gpus='1.5': expected an integer"),
        (["--loss_scale="], "--loss_scale='': expected a number or dynamic"),
        (["--loss_scale"], "--loss_scale needs a value: a number or dynamic"),
        (["--sync_replicas=maybe"], "--sync_replicas='maybe': expected True or False"),
        (["--num_gpus"], "--num_gpus needs a value"),
        (["--num_gpus", "--sync_replicas"], "--num_gpus needs a value"),
        (["--variable_update=magic"], "expected one of auto, parameter_server"),
    ],
)
def test_wrong_values_are_named(words, message):
    registry = parsed(*words)
    with pytest.raises(FlagError, match=message):
        registry.check()
    with pytest.raises(FlagError, match=message):
        registry.get(words[0].lstrip("-").split("=")[0])


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--variable_update=replicatd", "replicated"),
        ("--variable_update=parameter-server", "parameter_server"),
        ("--variable_update=COLLECTIVE", "collective"),
        ("--gradient_clip_type=globalnorm", "global_norm"),
        ("--var_dtype=fp_16", "fp16"),
        ("--local_parameter_device=cpu:0", "cpu"),
    ],
)
def test_a_value_that_is_nearly_right(word, meant):
    with pytest.raises(FlagError, match=rf"expected one of .*{meant}.*\. Did you mean '{meant}'\?$"):
        parsed(word).check()


def test_a_value_that_is_far_off_gets_no_guess():
    with pytest.raises(FlagError, match=r"expected one of norm, global_norm, value\.$"):
        parsed("--gradient_clip_type=qqq").check()


def test_who_is_to_blame():
    """A script's own mistakes are errors of another class: their traceback matters."""
    for wrong in (lambda: mox.get_flag("zzz"), lambda: mox.set_flag("num_gpus", 1.5)):
        with pytest.raises(ScriptFlagError):
            wrong()
    with pytest.raises(FlagError) as error:
        parsed("--num_gpus=two").check()
    assert not isinstance(error.value, ScriptFlagError)
    assert issubclass(FlagNotAvailableError, FlagError) and issubclass(FlagNotAvailableError, NotImplementedError)


def test_a_wrong_value_stops_the_run_before_anything_is_built(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--gradient_clip=much"])
    FLAGS.reset()
    with pytest.raises(FlagError, match="--gradient_clip='much': expected a number"):
        mox.run()


def test_unknown_names_get_the_nearest():
    with pytest.raises(FlagError, match="no flag 'num_gpu'. Did you mean num_gpus"):
        mox.get_flag("num_gpu")
    with pytest.raises(FlagError, match="no flag 'zzz'. mox_flags.get_help"):
        mox.set_flag("zzz", 1)
    with pytest.raises(TypeError, match="needs the name of a flag"):
        mox.get_flag()


def test_set_flag_checks_the_type():
    mox.set_flag("num_gpus", "3")
    assert mox.get_flag("num_gpus") == 3
    with pytest.raises(FlagError, match="expected an integer"):
        mox.set_flag("num_gpus", 1.5)
    mox.set_flag("variable_update", None)
    assert mox.get_flag("variable_update") is None


def test_a_name_that_the_script_defines_is_the_scripts():
    own = {"num_gpus": 7}
    FLAGS.share_with_user("num_gpus", lambda: own["num_gpus"], lambda value: own.update(num_gpus=value))
    assert mox.get_flag("num_gpus") == 7
    mox.set_flag("num_gpus", 2)
    assert own == {"num_gpus": 2}


def test_a_scripts_switch_of_our_name_is_no_error():
    registry = parsed("--rank")
    registry.share_with_user("rank", lambda: 1, lambda value: None)
    registry.check()
    assert registry.get("rank") == 1


def test_help_lists_every_flag():
    text = mox_flags.get_help()
    assert all(f"--{name} " in text for name in FLAGS.names())


@given(st.lists(st.text(alphabet="-=ab1 ", max_size=8)))
def test_strange_command_lines_never_raise(words):
    registry = FlagRegistry((Flag("a", int, 1, ""), Flag("b", bool, False, "")))
    registry.parse(words)
    assert set(registry.strip(words)) <= set(words)
