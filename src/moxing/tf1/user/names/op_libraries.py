"""`tf.load_op_library` for user modules: its errors say what a library was built for, and how to rebuild it."""

from __future__ import annotations

import os
import re
from types import ModuleType

from moxing.tf1 import environment

__all__ = ["load_op_library"]

#: What the dynamic linker says, and what it means. The first match counts.
_SIGNS = (
    (r"undefined symbol: (\S+)", "it was built for another version of TensorFlow, which had the symbol {0}"),
    (r"libtensorflow_framework\.so(?:\.1)?: cannot open", "it was built for TensorFlow 1"),
    (r"(lib(?:cu|nv)\w+\.so[.\d]*): cannot open", "it was built for a CUDA that is not installed: {0}"),
    (r"invalid ELF header|file too short|wrong ELF class", "it is no library for this machine"),
    (r"cannot open shared object file", "a library that it needs is not installed"),
)


def load_op_library(library_filename: str) -> ModuleType:
    """Loads a library of compiled operations, as `tf.load_op_library` does.

    Args:
      library_filename: the path of the `.so` file.

    Returns:
      A module with a function for every operation.

    Raises:
      tf.errors.NotFoundError: it cannot be loaded. The message says why, and how to build it for this TensorFlow.

    Example:
      >>> load_op_library('./no_such.so')  # doctest: +ELLIPSIS, +IGNORE_EXCEPTION_DETAIL
      Traceback (most recent call last):
      NotFoundError: ...
    """
    tf = environment.import_tensorflow()
    try:
        loaded: ModuleType = tf.load_op_library(library_filename)
    except tf.errors.NotFoundError as error:
        raise tf.errors.NotFoundError(None, None, explain(os.fspath(library_filename), error.message)) from None
    return loaded


def explain(path: str, message: str) -> str:
    """Returns the message of the dynamic linker with what it means and what to do.

    Example:
      >>> print(explain('ops.so', 'libtensorflow_framework.so.1: cannot open shared object file').splitlines()[1])
      ops.so cannot be loaded: it was built for TensorFlow 1.
    """
    if not os.path.exists(path) and os.sep in path:
        meaning = "the file does not exist"
    else:
        found = ((re.search(pattern, message), text) for pattern, text in _SIGNS)
        meaning = next((text.format(*match.groups()) for match, text in found if match), "see above")
    version = environment.import_tensorflow().__version__
    return (
        f"{message}\n{path} cannot be loaded: {meaning}.\nBuild it from its source for TensorFlow {version}:\n"
        "  g++ -std=c++17 -O2 -shared -fPIC SOURCE.cc -o LIBRARY.so $(python -c 'import tensorflow as tf; "
        "print(*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags())')\n"
        "Kernels of TensorFlow 1 need changes: Status is absl::Status, and int64 is int64_t."
    )
