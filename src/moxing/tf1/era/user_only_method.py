"""Methods that exist for user modules only."""

from __future__ import annotations

import sys
from typing import Any

from moxing.tf1.era import module_view

#: A name in the builtins of user modules, by which their code is recognized.
USER_MARK = "__moxing_user_module__"


class UserOnlyMethod:
    """A method that user modules find in a class of a library, and other code does not.

    Args:
      name: class and name of the method, for the debug line.
      function: the method.
      instead: what serves it, for the debug line.

    Example:
      >>> class Table:
      ...   append = UserOnlyMethod('Table.append', lambda self, row: [self, row], 'concat')
      >>> hasattr(Table(), 'append')
      False
    """

    def __init__(self, name: str, function: Any, instead: str) -> None:
        self._name = name
        self._function = function
        self._instead = instead

    def __get__(self, instance: Any, owner: type) -> Any:
        if USER_MARK not in sys._getframe(1).f_builtins:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name.rpartition('.')[2]!r}")
        module_view.note_once(self._name, self._instead)
        return self._function if instance is None else self._function.__get__(instance, owner)
