"""Lines of notebooks that are not Python: `%matplotlib inline`, `!ls`, `name?`."""

from __future__ import annotations

import re
import subprocess
import warnings
from collections.abc import Mapping
from typing import Any

#: The name under which cells call `run_shell`.
SHELL = "__moxing_shell__"

#: Magics that need nothing here: they set up Jupyter, or another TensorFlow.
_DROPPED = frozenset(
    {"autoreload", "config", "load_ext", "matplotlib", "precision", "pylab", "reload_ext", "tensorflow_version"}
)
#: Magics in front of a statement or a cell, which then runs as it is.
_TRANSPARENT = frozenset({"time", "timeit", "capture", "prun"})

_LINE = re.compile(r"^(?P<indent>\s*)(?:(?P<target>[\w, ]+?)\s*=\s*)?(?P<mark>%%?|!)(?P<rest>.*)$")
_HELP = re.compile(r"^\s*(\?+[\w.]+|[\w.]+\?+)\s*$")
_INSTALL = re.compile(
    r"\s*(?:sudo\s+)?(?:python\S*\s+-m\s+)?(?:pip\S*|conda|apt|apt-get|easy_install)\s+(?:\S+\s+)*?install\b"
)


def to_python(source: str) -> str:
    """Returns a cell as Python, with the same lines.

    Raises:
      SyntaxError: it has a magic that is not available.

    Example:
      >>> print(to_python('%matplotlib inline' + chr(10) + 'files = !ls'))
      pass  # %matplotlib inline
      files = __moxing_shell__('ls', globals());
    """
    if _is_python(source):
        return source
    lines = source.split("\n")
    first = lines[0].strip()
    if first.startswith("%%"):
        name = first[2:].split(" ")[0]
        if name in ("bash", "sh", "script"):
            return f"{SHELL}({chr(10).join(lines[1:])!r}, globals());"
        if name not in _TRANSPARENT:
            raise _unavailable(f"%%{name}", 1)
        lines[0] = f"pass  # {first}"
    return "\n".join(_line(text, number) for number, text in enumerate(lines, 1))


def _is_python(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "cell", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _line(text: str, number: int) -> str:
    if _HELP.match(text):
        return f"pass  # {text.strip()}"
    match = _LINE.match(text)
    if match is None:
        return text
    indent, rest = match["indent"], match["rest"].strip()
    target = f"{match['target']} = " if match["target"] else ""
    if match["mark"] == "!":
        # The semicolon keeps a last line from being shown as the value of the cell.
        return f"{indent}{target}{SHELL}({rest!r}, globals());"
    name, _, argument = rest.partition(" ")
    if name in _DROPPED and not target:
        return f"{indent}pass  # %{rest}"
    if name in _TRANSPARENT and not argument.lstrip().startswith("-"):
        return f"{indent}{target}{argument}"
    if name == "cd" and not target:
        return f"{indent}__import__('os').chdir({argument.strip()!r})"
    raise _unavailable(f"%{name}", number)


def _unavailable(magic: str, number: int) -> SyntaxError:
    known = ", ".join(f"%{name}" for name in sorted(_DROPPED | _TRANSPARENT | {"cd"}))
    text = f"the magic {magic} is not available under moxing run: remove it, or write it in Python. Known are {known}"
    return SyntaxError(text, ("cell", number, 1, magic))


def run_shell(command: str, names: Mapping[str, Any]) -> list[str]:
    """Runs a `!` line with the shell, prints what it prints, and returns its lines.

    Installations are left out: they would replace the TensorFlow that runs the notebook.

    Args:
      command: the command; `{name}` stands for a variable of the notebook.
      names: the variables.

    Example:
      >>> run_shell('echo {word}', {'word': 'five'})
      five
      ['five']
    """
    if _INSTALL.match(command):
        print(f"moxing run: left out !{command}: install packages outside of the notebook")
        return []
    text = re.sub(r"\{(\w+)\}", lambda match: str(names.get(match[1], match[0])), command)
    done = subprocess.run(
        text, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    print(done.stdout, end="")
    if done.returncode:
        print(f"moxing run: !{command} ended with exit code {done.returncode}")
    return done.stdout.splitlines()
