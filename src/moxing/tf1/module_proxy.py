"""A module with a few other names, for one library that needs them: the real module does not change."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class ModuleProxy(ModuleType):
    """A module with additional or other names.

    Args:
      real: the module.
      more: the names.

    Example:
      >>> import math
      >>> proxy = ModuleProxy(math, {'tau': 6})
      >>> proxy.tau, proxy.floor(1.5)
      (6, 1)
    """

    def __init__(self, real: ModuleType, more: dict[str, Any]) -> None:
        super().__init__(real.__name__, real.__doc__)
        self._real = real
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
