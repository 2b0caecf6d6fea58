"""Where an imported module comes from: the facade, a library, the program itself, or nowhere. Nothing is imported."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder

#: The places that a module may come from.
FACADE, LIBRARY, OWN, NOWHERE = "facade", "library", "own", "nowhere"

#: Libraries that are imported to look their names up. Others may have side effects: only their presence is checked.
_LOOKED_INTO = frozenset({"absl", "keras", "numpy", "pandas", "scipy", "six", "sklearn"})

#: Packages on PyPI that are called as their modules are. Others are not named: a wrong name may be anybody's package.
_SAME_NAME = frozenset(
    {
        *("gensim", "gym", "h5py", "horovod", "imageio", "joblib", "librosa", "lmdb", "matplotlib", "mock", "networkx"),
        *(
            "nltk",
            "numba",
            "pandas",
            "psutil",
            "requests",
            "scipy",
            "seaborn",
            "sentencepiece",
            "tabulate",
            "tensorboard",
        ),
        *("tensorboard", "torch", "torchvision", "tqdm", "transformers"),
    }
)

#: The package on PyPI, where it is called differently.
_PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "gi": "PyGObject",
    "magic": "python-magic",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorflow_datasets": "tensorflow-datasets",
    "tensorflow_hub": "tensorflow-hub",
    "tensorflow_probability": "tensorflow-probability",
    "yaml": "pyyaml",
}

#: Modules that are gone, and what has their contents today.
_INSTEAD = {
    "Image": "use `from PIL import Image`",
    "anydbm": "use dbm",
    "commands": "use subprocess.getoutput and getstatusoutput",
    "cv": "it was OpenCV 1; use cv2",
    "exceptions": "the exceptions of Python are builtins",
    "md5": "use hashlib.md5",
    "new": "use types",
    "sets": "use the builtin set",
    "sha": "use hashlib.sha1",
    "statvfs": "use os.statvfs",
    "xmlrpclib": "use xmlrpc.client",
    "tensorflow_addons": "it is no longer maintained and needs an older TensorFlow",
}


@dataclass(frozen=True)
class Program:
    """The directories and module names of the program that is checked.

    Attributes:
      roots: directories that its modules may be imported from, nearest first.
      names: the names of all its modules and packages, wherever they are.
    """

    roots: tuple[str, ...]
    names: frozenset[str]

    @classmethod
    def of(cls, root: str, files: Iterable[str]) -> Program:
        """Returns the program with these files below `root`."""
        names: set[str] = set()
        for file in files:
            parts = os.path.relpath(os.path.abspath(file), root).split(os.sep)
            names.update((*parts[:-1], os.path.splitext(parts[-1])[0]))
        return cls(tuple(_with_packages(root)), frozenset(names))


def _with_packages(root: str) -> Iterable[str]:
    """Yields the directory, and those above it from which its modules may be imported: up to the repository's."""
    above = [root]
    while os.path.dirname(above[-1]) != above[-1]:
        above.append(os.path.dirname(above[-1]))
    repository = next((index for index, folder in enumerate(above) if _has(folder, ".git")), 0)
    package = next(index for index, folder in enumerate(above) if not _has(folder, "__init__.py"))
    return above[: max(repository, package) + 1]


def _has(folder: str, name: str) -> bool:
    return os.path.exists(os.path.join(folder, name))


def place_of(module: str, file: str, program: Program) -> str:
    """Returns where `module` comes from when `file` imports it: `FACADE`, `LIBRARY`, `OWN` or `NOWHERE`.

    Args:
      module: the dotted name in an import statement.
      file: the file that imports it.
      program: the program that the file belongs to.

    Example:
      >>> place_of('json.decoder', '/no/such/train.py', Program((), frozenset()))
      'library'
    """
    from moxing.tf1.user import resolver

    head = module.partition(".")[0]
    if resolver.is_served_here(module):
        return FACADE
    if any(_holds(folder, head) for folder in (os.path.dirname(os.path.abspath(file)), *program.roots)):
        return OWN
    if _library_spec(head) is not None:
        return LIBRARY
    # Directories of PYTHONPATH may hold other parts of the program.
    return OWN if head in program.names or PathFinder.find_spec(head) is not None else NOWHERE


@functools.cache
def _holds(folder: str, head: str) -> bool:
    if os.path.isfile(os.path.join(folder, head + ".py")):
        return True
    package = os.path.join(folder, head)
    try:
        # A directory of data is no package, even if it is called as a library is.
        return any(name.endswith(".py") for name in os.listdir(package))
    except OSError:
        return False


@functools.cache
def _library_spec(head: str) -> ModuleSpec | None:
    """Returns the spec of an installed package or a module of the standard library."""
    from moxing.tf1.user import user_modules

    for finder in (BuiltinImporter, FrozenImporter, PathFinder):
        try:
            spec = finder.find_spec(head)
        except (ImportError, ValueError):
            continue
        if spec is None:
            continue
        if spec.origin is None or not spec.has_location:
            # A directory without __init__.py is a package of the user, except where libraries are installed.
            folders = list(spec.submodule_search_locations or [])
            if folders and not any("-packages" in folder for folder in folders):
                continue
            return spec
        if not user_modules.is_user_module(head, spec.origin):
            return spec
    return None


def may_be_imported(module: str) -> bool:
    """Returns True if the names of a library may be looked up by importing it.

    Example:
      >>> may_be_imported('numpy.random'), may_be_imported('antigravity')
      (True, False)
    """
    from moxing.tf1.era import old_stdlib

    head = module.partition(".")[0]
    return head in _LOOKED_INTO or head in old_stdlib.NAMES or module in sys.modules


def python2_module(module: str) -> bool:
    """Returns True if user modules can import a module by its name in Python 2.

    Example:
      >>> python2_module('cPickle'), python2_module('commands')
      (True, False)
    """
    from moxing.tf1.era import old_stdlib

    return module in old_stdlib.RENAMED_MODULES


def advice_for(module: str) -> str:
    """Returns what to do about a module that is nowhere.

    Example:
      >>> advice_for('yaml')
      'yaml is not installed: pip install pyyaml'
      >>> advice_for('commands')
      'commands is not available: use subprocess.getoutput and getstatusoutput'
    """
    head = module.partition(".")[0]
    if head in _INSTEAD:
        return f"{head} is not available: {_INSTEAD[head]}"
    package = head if head in _SAME_NAME else _PACKAGES.get(head)
    if package is not None:
        return f"{head} is not installed: pip install {package}"
    return f"{head} is neither installed nor a module of the program"
