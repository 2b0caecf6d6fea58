"""Checks arguments of hooks. Errors name the hook, the argument, the value and what is expected."""

from __future__ import annotations

from typing import Any

from moxing.framework.util.number_checks import is_number


class ChecksArguments:
    """Mixin with checks of arguments."""

    def _count(self, argument: str, value: Any, least: int = 1) -> int:
        if not is_number(value) or value % 1 or value < least:
            raise ValueError(self._wrong(argument, value, f"an integer from {least}"))
        return int(value)

    def _flag(self, argument: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError(self._wrong(argument, value, "True or False"))
        return value

    def _wrong(self, argument: str, value: Any, right: str) -> str:
        return f"{type(self).__name__}({argument}={value!r}): expected {right}."
