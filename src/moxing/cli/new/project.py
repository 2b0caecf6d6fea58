"""Writes a project from its templates."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
#: The kinds of projects, each with what it can be built on; the first is the default.
KINDS = {"classifier": ("mox", "estimator")}

_SUFFIXES = (".py", ".md")
#: Of Linux's file systems.
_LONGEST_NAME = 255


def template_files(kind: str, base: str) -> dict[str, Path]:
    """Returns the files of a project: their templates by their paths in it, sorted.

    Args:
      kind: the kind of project.
      base: what it is built on.

    Example:
      >>> [name for name in template_files('classifier', 'mox') if name.startswith('t')]
      ['tests/test_project.py', 'train.py']
    """
    found = {
        path.relative_to(folder).as_posix(): path
        for folder in (TEMPLATES / kind / "common", TEMPLATES / kind / base)
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES
    }
    return dict(sorted(found.items()))


def write_project(directory: str, kind: str, base: str) -> list[str]:
    """Writes a project into a new directory and returns the paths of its files.

    The directory gets its name when it is complete: after an error nothing is there.

    Args:
      directory: the directory; it does not exist or is empty.
      kind: the kind of project, one of `KINDS`.
      base: what it is built on.

    Raises:
      ValueError: the directory is not empty, is a file, or cannot have this name.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     'train.py' in write_project(folder + '/my_project', 'classifier', 'mox')
      True
    """
    target = _checked(directory)
    files = template_files(kind, base)
    # In the same directory, so that it can be renamed.
    temporary = target.with_name(f".moxing-new-{secrets.token_hex(8)}")
    try:
        for name, template in files.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(template.read_bytes())
        os.rename(temporary, target)
    except OSError as error:
        raise ValueError(f"directory={directory!r} cannot be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return list(files)


def _checked(directory: str) -> Path:
    name = os.path.basename(directory.rstrip("/"))
    if not name.strip() or name in (".", "..") or "\0" in directory:
        raise ValueError(f"directory={directory!r}: expected the name of a new directory, such as my_project.")
    if len(os.fsencode(name)) > _LONGEST_NAME:
        raise ValueError(f"directory={directory!r}: a name has at most {_LONGEST_NAME} bytes.")
    # Without symbolic links, which a rename would replace.
    target = Path(os.path.realpath(directory))
    if not target.parent.is_dir():
        raise ValueError(f"directory={directory!r}: there is no directory {str(target.parent)!r}; create it first.")
    if target.exists() and not target.is_dir():
        raise ValueError(f"directory={directory!r} is a file; use another name, such as {free_name(directory)}.")
    if target.is_dir() and any(target.iterdir()):
        raise ValueError(
            f"directory={directory!r} exists and is not empty; use another name, such as {free_name(directory)}."
        )
    return target


def free_name(directory: str) -> str:
    """Returns a similar name that does not exist yet.

    Example:
      >>> free_name('/no/such/project/')
      '/no/such/project_2'
    """
    stem, number = directory.rstrip("/"), 2
    while os.path.lexists(f"{stem}_{number}"):
        number += 1
    return f"{stem}_{number}"
