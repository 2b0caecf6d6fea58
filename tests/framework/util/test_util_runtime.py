"""moxing.framework.util.runtime."""

import logging

import pytest

from moxing.framework.util import runtime


@pytest.fixture(autouse=True)
def logger():
    """MoXing's logger, as it was afterwards."""
    logger = logging.getLogger("moxing")
    state = logger.level, logger.propagate, list(logger.handlers)
    yield logger
    logger.level, logger.propagate, logger.handlers[:] = state


@pytest.mark.parametrize(("level", "number"), [(logging.DEBUG, 10), ("info", 20), ("WARNING", 30), (15, 15)])
def test_one_handler_and_the_level(logger, level, number):
    runtime.reset_logger(level)
    assert runtime.reset_logger(level=level) is logger
    assert logger.level == number
    assert len(logger.handlers) == 1


def test_lines_are_printed_once_and_only_from_the_level_on(logger, capsys):
    root = logging.getLogger()
    extra = logging.StreamHandler()
    root.addHandler(extra)
    try:
        runtime.reset_logger("WARNING")
        logging.getLogger("moxing.child").info("hidden")
        logging.getLogger("moxing.child").warning("shown")
    finally:
        root.removeHandler(extra)
    assert capsys.readouterr().err == "WARNING:moxing.child:shown\n"


@pytest.mark.parametrize("wrong", ["loud", None, True, 1.5])
def test_a_wrong_level_lists_the_right_ones(logger, wrong):
    handlers = list(logger.handlers)
    with pytest.raises(ValueError, match="level=.*DEBUG, INFO"):
        runtime.reset_logger(wrong)
    assert logger.handlers == handlers
