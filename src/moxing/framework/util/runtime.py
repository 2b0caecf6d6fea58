"""Settings of the process."""

from __future__ import annotations

import logging

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def reset_logger(level: int | str = logging.INFO) -> None:
    """Sets the level of the root logger and of those of TensorFlow and MoXing.

    `import moxing.tensorflow` has set them to INFO.

    Args:
      level: a level of the `logging` module, as a number or a name.

    Raises:
      ValueError: the level is neither a number nor a known name.

    Example:
      >>> reset_logger('WARNING')
      >>> logging.getLogger('tensorflow').getEffectiveLevel() == logging.WARNING
      True
      >>> reset_logger('INFO')
    """
    number = _parse_level(level)
    for name in ("", "tensorflow", "moxing"):
        logging.getLogger(name).setLevel(number)


def _parse_level(level: int | str) -> int:
    if isinstance(level, str) and level.upper() in _LEVELS:
        return int(getattr(logging, level.upper()))
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    raise ValueError(f"level={level!r}: expected an integer or one of {', '.join(_LEVELS)}.")
