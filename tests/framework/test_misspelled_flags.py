"""Words on the command line that are nearly flags of MoXing: ignored, with a warning that is right."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from moxing.framework.flags import FLAGS, FlagRegistry
from moxing.framework.misspelled_flags import near_misses

GPU, HOST = "num_gpu", "worker_host"


@pytest.fixture(autouse=True)
def no_tests_around(monkeypatch):
    """Tests are user modules too, and name wrong flags."""
    for name, module in tuple(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(Path(__file__).parents[1])):
            monkeypatch.delitem(sys.modules, name)


def warnings_for(caplog, *words, share=()):
    registry = FlagRegistry(FLAGS.flags)
    registry.parse(list(words))
    for name in share:
        registry.share_with_user(name, lambda: None, lambda value: None)
    with caplog.at_level(logging.WARNING, "tensorflow"):
        registry.check()
        registry.check()  # a script's second run
    return caplog.messages


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        (f"--{GPU}=2", "num_gpus"),
        (f"--{HOST}=a,b", "worker_hosts"),
        (f"--{GPU}", "num_gpus"),
        ("--worker-hosts=a", "worker_hosts"),
        ("--task_idx=1", "task_index"),
        ("--sync_replica=False", "sync_replicas"),
        ("--dgc_sparsity=0.9", "dgc_sparsity_strategy"),
    ],
)
def test_a_near_miss_is_told_once(caplog, word, meant):
    name = word.partition("=")[0]
    assert warnings_for(caplog, "--lr=1", word) == [
        f"Ignoring {name}: not a flag of MoXing or of this script. Did you mean --{meant}?"
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--num_epochs=3", "--local_rank=0", "--total_samples=9", "--momentum=0.9", "--data_url=x", "--num_threads=2"],
        ["--num_gpus=2", "--nosync_replicas"],
        ["--", f"--{GPU}=2"],
        [f"{GPU}=2", "file"],
        ["--checkpoint_include_patterns", f"x{GPU}"],
        [f"--{GPU}=2", "--job_name=ps"],
        [f"--{GPU}=2", "--task_index=1"],
    ],
    ids=" ".join,
)
def test_nothing_is_said_of_other_words(caplog, words):
    assert warnings_for(caplog, *words) == []


def test_a_flag_that_the_script_has_under_our_name(caplog):
    """argparse takes `--num_g` for the script's own `--num_gpus`."""
    assert warnings_for(caplog, f"--{GPU}=2", share=["num_gpus"]) == []


@pytest.mark.parametrize(
    "source",
    [
        "parser.add_argument('--{}')",
        "def main({}=1): pass",
        "if '--{}=2' in sys.argv: pass",
        "parser.add('--{dashes}')",
    ],
)
def test_a_name_in_the_script_is_the_scripts(tmp_path, monkeypatch, source):
    script = tmp_path / "users_module.py"
    module = type(sys)("users_module")
    module.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "users_module", module)
    script.write_text(source.format(GPU, dashes=GPU.replace("_", "-")))
    assert near_misses([GPU], FLAGS.names()) == {}
    script.write_text(source.format(f"my_{GPU}s", dashes="x"))
    assert near_misses([GPU], FLAGS.names()) == {GPU: "num_gpus"}


def test_a_flag_of_absl_is_somebodys(monkeypatch):
    class Flags:
        FLAGS = {GPU: 1}  # noqa: RUF012

    monkeypatch.setitem(sys.modules, "absl.flags", Flags)
    assert near_misses([GPU, HOST], FLAGS.names()) == {HOST: "worker_hosts"}


def test_swapped_letters():
    word = "restart".replace("ar", "ra")  # not written out: this file would count as the script that reads it
    assert near_misses([word, "retsart"], FLAGS.names()) == {word: "restart"} | {"retsart": "restart"}
