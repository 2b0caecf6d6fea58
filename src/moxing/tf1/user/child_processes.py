"""Child processes of a launched script run it with the launcher too.

A child that `multiprocessing` starts with `spawn` or `forkserver` runs the main script again, in a new interpreter
without the launcher. It runs `spawned_main.py` instead, which launches the script.
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
    """A script or module to run.

    Attributes:
      target: the path of the script, or the name of the module.
      is_module: whether `target` is a module.
      legacy: installed packages that count as user modules.
      py2: whether user modules are Python 2.
      ref_variables: whether variables are those of TensorFlow 1, without resources.
    """

    target: str
    is_module: bool = False
    legacy: Sequence[str] = ()
    py2: bool = False
    ref_variables: bool = False


def remember(launch: Launch) -> None:
    """Stores `launch` for child processes, in an environment variable.

    Example:
      >>> remember(Launch('train.py'))
      >>> remembered().target
      'train.py'
    """
    os.environ[_VARIABLE] = json.dumps(asdict(launch))


def remembered() -> Launch:
    """Returns the launch that the parent process stored."""
    return Launch(**json.loads(os.environ[_VARIABLE]))


def install() -> None:
    """Makes `multiprocessing` run the script in its children as it was launched here."""
    from multiprocessing import spawn

    if not hasattr(spawn.get_preparation_data, "_moxing_original"):
        spawn.get_preparation_data = _with_launcher(spawn.get_preparation_data)


def _with_launcher(original: Any) -> Any:
    @functools.wraps(original)
    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        if data.pop("init_main_from_name", None) or "init_main_from_path" in data:
            data["init_main_from_path"] = os.path.join(os.path.dirname(__file__), "spawned_main.py")
        return data

    get_preparation_data._moxing_original = original  # type: ignore[attr-defined]
    return get_preparation_data
