"""Makes the modules of `runs` importable; pytest's importlib mode leaves sys.path alone."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "runs"))


@pytest.fixture
def proxy(proxy):
    """The proxy in front of the store. Requests are retried once, so that tests of failures get the error soon."""
    from moxing.framework import file
    from moxing.framework.flags import FLAGS

    file.set_auth(retry=1)
    FLAGS.set("upload_patience", 0)
    return proxy


@pytest.fixture
def log_dir(tmp_path):
    """The `log_dir` of a small training of 3 steps."""
    from bad_runs import trained

    return trained(tmp_path / "log")


@pytest.fixture
def steppers(monkeypatch):
    """The steppers of the test's runs."""
    # The package has a function of this name.
    run_module = importlib.import_module("moxing.tensorflow.executor.run")
    made = []
    original = run_module.make_stepper
    monkeypatch.setattr(run_module, "make_stepper", lambda *arguments: made.append(original(*arguments)) or made[-1])
    return made
