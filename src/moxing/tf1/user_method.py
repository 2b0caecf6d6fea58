"""Methods that exist for modules of the user only."""

from __future__ import annotations

import sys
from typing import Any

from moxing.tf1 import views


class UserMethod:
    """A method that modules of the user find in a class of a library, and nobody else.

    Example:
      >>> class Table:
      ...   append = UserMethod('Table.append', lambda self, row: [self, row], 'concat')
      >>> hasattr(Table(), 'append')
      False
    """

    def __init__(self, name: str, function: Any, instead: str) -> None:
        self._name = name
        self._function = function
        self._instead = instead

    def __get__(self, instance: Any, owner: type) -> Any:
        if not _is_user_code(sys._getframe(1).f_builtins):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name.rpartition('.')[2]!r}")
        views.note_once(self._name, self._instead)
        return self._function if instance is None else self._function.__get__(instance, owner)


def _is_user_code(builtins_of_caller: dict[str, Any]) -> bool:
    from moxing.tf1 import user_modules

    return builtins_of_caller is vars(user_modules.user_builtins())
