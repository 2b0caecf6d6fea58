"""Child processes of a launched script: they, too, see the script as it was launched.

A child that `multiprocessing` starts with `spawn` or `forkserver` runs the main script again, in an interpreter that
knows nothing of the launcher. It is told to run `spawned.py` instead, which launches the script first.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

_VARIABLE = "MOXING_LAUNCHED"


@dataclass(frozen=True)
class Launch:
    """What was launched: a script's path or a module's name, and the installed packages that count as the user's."""

    target: str
    is_module: bool = False
    legacy: Sequence[str] = ()


def remember(launch: Launch) -> None:
    """Leaves a note of `launch` for child processes.

    Example:
      >>> remember(Launch('train.py'))
      >>> remembered().target
      'train.py'
    """
    os.environ[_VARIABLE] = json.dumps(asdict(launch))


def remembered() -> Launch:
    """The launch that the parent process noted."""
    return Launch(**json.loads(os.environ[_VARIABLE]))


def install() -> None:
    """Has `multiprocessing` run the script in its children as it was launched here."""
    from multiprocessing import spawn

    if not hasattr(spawn.get_preparation_data, "_moxing_original"):
        spawn.get_preparation_data = _with_launcher(spawn.get_preparation_data)


def _with_launcher(original: Any) -> Any:
    @functools.wraps(original)
    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        if data.pop("init_main_from_name", None) or "init_main_from_path" in data:
            data["init_main_from_path"] = os.path.join(os.path.dirname(__file__), "spawned.py")
        return data

    get_preparation_data._moxing_original = original  # type: ignore[attr-defined]
    return get_preparation_data
