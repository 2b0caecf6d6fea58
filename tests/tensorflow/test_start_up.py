"""What `import moxing.tensorflow` does to logging."""

import logging

import pytest
import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow import start_up


@pytest.fixture(autouse=True)
def levels(monkeypatch):
    root, logger = logging.getLogger(), logging.getLogger("tensorflow")
    before = root.level, logger.level, logger.propagate, FLAGS.get("running_log_level")
    yield
    root.setLevel(before[0])
    logger.setLevel(before[1])
    logger.propagate = before[2]
    FLAGS.set("running_log_level", before[3])


@pytest.mark.parametrize(("flag", "level"), [(0, "ERROR"), (1, "WARNING"), (2, "INFO"), (3, "DEBUG")])
def test_the_flag_sets_the_levels(monkeypatch, flag, level):
    monkeypatch.setenv("MOX_SILENT_MODE", "1")
    FLAGS.set("running_log_level", flag)
    start_up.announce("1.0")
    assert logging.getLogger().level == tf.logging.get_verbosity() == getattr(logging, level)


def test_a_level_that_does_not_exist():
    FLAGS.set("running_log_level", 4)
    with pytest.raises(ValueError, match="--running_log_level=4: expected 0, 1, 2 or 3."):
        start_up.announce("1.0")


def test_versions_are_logged_unless_silent(monkeypatch, caplog):
    monkeypatch.delenv("MOX_SILENT_MODE", raising=False)
    start_up.announce("1.2.3")
    assert "Using MoXing-v1.2.3" in caplog.messages
    caplog.clear()
    monkeypatch.setenv("MOX_SILENT_MODE", "1")
    start_up.announce("1.2.3")
    assert caplog.messages == []
