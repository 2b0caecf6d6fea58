"""The verdict about one import or one use of a name."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Collection
from dataclasses import dataclass

from moxing.cli.check import calls, modules
from moxing.cli.check.names import Call, Use
from moxing.tf1.user import resolver
from moxing.tf1.user.resolver import Origin

#: Names that libraries dropped, and what to use; longest first.
_INSTEAD = {
    "scipy.misc": "use PIL.Image or imageio for images; scipy.special and scipy.datasets have other parts",
    "sklearn.cross_validation": "use sklearn.model_selection",
    "sklearn.grid_search": "use sklearn.model_selection",
    "sklearn.externals.joblib": "use the package joblib",
    "sklearn.externals.six": "use the package six",
}


@dataclass(frozen=True)
class Verdict:
    """What is known about a name.

    Attributes:
      name: the name, with `tf` for `tensorflow`.
      problem: why it is missing or its call fails, and what to do; empty if it is served.
      provider: the package that serves it.
      is_call: whether the name exists and only the call fails.
      is_package: whether it is a package that is not installed.
    """

    name: str
    problem: str = ""
    provider: str = ""
    is_call: bool = False
    is_package: bool = False


def judge(use: Use, file: str, program: modules.Program, written: Collection[str] = ()) -> Verdict | None:
    """Returns the verdict about a use, or None if it is not judged.

    Args:
      use: the import or name.
      file: the file that has it.
      program: the program that the file belongs to.
      written: dotted names that the program assigns to.

    Example:
      >>> use = Use('name', 1, (Origin('tensorflow', '', ('nn', 'rellu')),))
      >>> judge(use, 'train.py', modules.Program((), frozenset())).name
      'tf.nn.rellu'
    """
    verdicts = []
    for origin in use.origins:
        verdict = _judge_one(origin, use, file, program)
        if verdict is None or any(_is_below(str(origin), one) for one in written):
            return None
        if not verdict.problem:
            return verdict
        verdicts.append(verdict)
    return verdicts[0]


def _is_below(name: str, written: str) -> bool:
    return name == written or name.startswith(written + ".")


def _judge_one(origin: Origin, use: Use, file: str, program: modules.Program) -> Verdict | None:
    place = modules.place_of(origin.module, file, program)
    if place == modules.NOWHERE and modules.python2_module(origin.module):
        place = modules.FACADE
    if place == modules.OWN:
        return None
    if place == modules.NOWHERE:
        # The import is the finding; what is used of it would only repeat it.
        head = origin.module.partition(".")[0]
        return Verdict(head, modules.advice_for(head), is_package=True) if use.kind == "import" else None
    if place == modules.LIBRARY and not modules.may_be_imported(origin.module):
        head = origin.module.partition(".")[0]
        provider = resolver.PYTHON if head in sys.stdlib_module_names else head
        return Verdict(head, provider=provider) if use.kind == "import" else None
    return _looked_up(origin, use.call)


def _looked_up(origin: Origin, call: Call | None) -> Verdict:
    found = resolver.resolve(origin)
    name = shown(found.name)
    if found.problem:
        return Verdict(name if found.refused else shown(str(origin)), _with_advice(found.name, found.problem))
    if call is not None and call.complete and found.name == str(origin):
        signature = _signature(origin)
        problem = "" if signature is None else calls.wrong_arguments(call.names, call.count, signature)
        if problem:
            return Verdict(name, f"the call fails: {problem}", found.provider, is_call=True)
    return Verdict(name, provider=found.provider)


@functools.cache
def _signature(origin: Origin) -> inspect.Signature | None:
    return calls.parameters(resolver.resolve(origin).value)


def _with_advice(name: str, problem: str) -> str:
    instead = next((text for old, text in _INSTEAD.items() if _is_below(name, old)), "")
    return f"{problem}: {instead}" if instead else problem


def shown(name: str) -> str:
    """Returns a dotted name as programs write it.

    Example:
      >>> shown('tensorflow.compat.v1.nn.relu'), shown('tensorflow.python.ops.nn'), shown('tensorflow')
      ('tf.nn.relu', 'tensorflow.python.ops.nn', 'tensorflow')
    """
    for prefix in ("tensorflow.compat.v1.", "tensorflow."):
        if name.startswith(prefix) and not name.startswith(("tensorflow.python.", "tensorflow.core.")):
            return "tf." + name[len(prefix) :]
    return name
