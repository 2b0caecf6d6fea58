"""moxing.framework.util.runtime."""

import logging

import pytest

from moxing.framework.util import runtime

LOGGERS = [logging.getLogger(name) for name in ("", "tensorflow", "moxing")]


@pytest.fixture(autouse=True)
def levels():
    """The levels, as they were afterwards."""
    before = [logger.level for logger in LOGGERS]
    yield
    for logger, level in zip(LOGGERS, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize(("level", "number"), [(logging.DEBUG, 10), ("info", 20), ("WARNING", 30), (15, 15)])
def test_the_level(level, number):
    runtime.reset_logger(level=level)
    assert [logger.level for logger in LOGGERS] == [number] * 3


def test_lines_below_the_level_are_not_printed(caplog):
    runtime.reset_logger("WARNING")
    logging.getLogger("moxing.child").info("hidden")
    logging.getLogger("moxing.child").warning("shown")
    assert [record.getMessage() for record in caplog.records] == ["shown"]


@pytest.mark.parametrize("wrong", ["loud", None, True, 1.5])
def test_a_wrong_level_lists_the_right_ones(wrong):
    with pytest.raises(ValueError, match="level=.*DEBUG, INFO"):
        runtime.reset_logger(wrong)
