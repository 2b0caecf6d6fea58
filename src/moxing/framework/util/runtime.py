"""The process that a script runs in."""

from __future__ import annotations

import logging

_FORMAT = "%(levelname)s:%(name)s:%(message)s"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def reset_logger(level: int | str = logging.INFO) -> logging.Logger:
    """Gives MoXing's logger (`moxing`) one handler, on standard error, and a level. Other loggers are left alone.

    Args:
      level: A level of the `logging` module, as a number or a name.

    Returns:
      The logger.

    Raises:
      ValueError: The level is no number and no known name.

    Example:
      >>> reset_logger('WARNING').getEffectiveLevel() == logging.WARNING
      True
    """
    number = _parse_level(level)
    logger = logging.getLogger("moxing")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(number)
    # The handlers of the root logger would print every line a second time.
    logger.propagate = False
    return logger


def _parse_level(level: int | str) -> int:
    if isinstance(level, str) and level.upper() in _LEVELS:
        return int(getattr(logging, level.upper()))
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    raise ValueError(f"level={level!r}: expected an integer or one of {', '.join(_LEVELS)}.")
