"""The names that NumPy had in 2018."""

from __future__ import annotations

import functools
from typing import Any

from moxing.tf1.era.module_view import Names, constants, note_once
from moxing.tf1.era.user_only_method import UserOnlyMethod

#: Names that meant a Python type.
_PYTHON_TYPES = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "object": object,
    "str": str,
    "unicode": str,
    "long": int,
}

#: Old names and the names of the same things today.
_RENAMED = {
    "Inf": "inf",
    "Infinity": "inf",
    "PINF": "inf",
    "infty": "inf",
    "NAN": "nan",
    "NaN": "nan",
    "alltrue": "all",
    "sometrue": "any",
    "product": "prod",
    "cumproduct": "cumprod",
    "in1d": "isin",
    "mat": "asmatrix",
    "rank": "ndim",
    "round_": "round",
    "row_stack": "vstack",
    "trapz": "trapezoid",
    "float_": "float64",
    "complex_": "complex128",
    "cfloat": "complex128",
    "singlecomplex": "complex64",
    "string_": "bytes_",
    "unicode_": "str_",
    "typeDict": "sctypeDict",
}


def names() -> Names:
    """Returns the old names of `numpy`.

    Example:
      >>> names()['int']()
      <class 'int'>
    """
    import numpy as np

    own: dict[str, Any] = {
        "NINF": -np.inf,
        "NZERO": -0.0,
        "PZERO": 0.0,
        "array": _ragged(np.array),
        "asarray": _ragged(np.asarray),
        "asscalar": lambda array: array.item(),
        "fromstring": _fromstring,
        "load": _load,
        "reshape": _reshape,
        "sctypes": _scalar_types(),
        "find_common_type": _find_common_type,
        "issubsctype": np.issubdtype,
        "msort": functools.partial(np.sort, axis=0),
        "obj2sctype": lambda kind: np.dtype(kind).type,
        "sctype2char": lambda kind: np.dtype(kind).char,
    }
    renamed = {old: functools.partial(getattr, np, new) for old, new in _RENAMED.items()}
    return {**constants(**_PYTHON_TYPES, **own), **renamed}


def install() -> None:
    """Adds `tostring` to arrays, for user modules only.

    Scripts that write TFRecord files call it on every image. A C type takes no new attributes, so this writes to the
    dictionary behind it and invalidates Python's method cache.
    """
    import ctypes
    import gc

    import numpy as np

    if hasattr(np.ndarray, "tostring"):
        return
    (attributes,) = gc.get_referents(np.ndarray.__dict__)
    attributes["tostring"] = UserOnlyMethod("ndarray.tostring", _tostring, "ndarray.tobytes")
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))


def _tostring(self: Any, order: str = "C") -> bytes:
    return self.tobytes(order)


def random_names() -> Names:
    """Returns the old names of `numpy.random`.

    Example:
      >>> int(random_names()['random_integers']()(1, 1))
      1
    """
    return {"random_integers": lambda: _random_integers}


def lib_names() -> Names:
    """Returns the old names of `numpy.lib`.

    Example:
      >>> lib_names()['pad']()([1], 1).tolist()
      [0, 1, 0]
    """
    import numpy as np

    return constants(pad=np.pad)


def _ragged(original: Any) -> Any:
    """`np.array`, which made objects of rows of different lengths, and copied if needed with `copy=False`."""

    @functools.wraps(original)
    def array(rows: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("copy") is False:
            # It meant "if needed" before NumPy 2.
            kwargs["copy"] = None
        try:
            return original(rows, *args, **kwargs)
        except ValueError as error:
            if args or kwargs.get("dtype") is not None or "inhomogeneous" not in str(error):
                raise
            note_once("numpy.array of rows of different lengths", "numpy.array(rows, dtype=object)")
            return original(rows, **{**kwargs, "dtype": object})

    return array


def _fromstring(string: bytes | str, dtype: Any = float, count: int = -1, sep: str = "", **kwargs: Any) -> Any:
    """`np.fromstring`, which also read binary data. The array is a copy, not a view of the bytes."""
    import numpy as np

    if sep:
        return np.fromstring(string, dtype, count, sep=sep, **kwargs)
    note_once("numpy.fromstring on binary data", "numpy.frombuffer")
    data = string.encode("latin-1") if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count).copy()


def _load(file: Any, mmap_mode: Any = None, allow_pickle: bool | None = None, **kwargs: Any) -> Any:
    """`np.load`, which read arrays of objects by default until 1.16.2."""
    import numpy as np

    if allow_pickle is None:
        try:
            found = np.load(file, mmap_mode, allow_pickle=False, **kwargs)
        except ValueError as error:
            if "allow_pickle=False" not in str(error) and "pickled data" not in str(error):
                raise
            # The program of 2018 read it: a pickle of the user's own file.
            note_once("numpy.load of objects", "numpy.load(allow_pickle=True)")
            if hasattr(file, "seek"):
                file.seek(0)
            return np.load(file, mmap_mode, allow_pickle=True, **kwargs)
        if hasattr(found, "allow_pickle"):
            # An archive reads its arrays later.
            found.allow_pickle = True
        return found
    return np.load(file, mmap_mode, allow_pickle=allow_pickle, **kwargs)


def _reshape(a: Any, *shape: Any, newshape: Any = None, **kwargs: Any) -> Any:
    """`np.reshape`, whose second argument was called `newshape`."""
    import numpy as np

    return np.reshape(a, *shape, **kwargs) if newshape is None else np.reshape(a, newshape, *shape, **kwargs)


def _scalar_types() -> dict[str, list[Any]]:
    """`np.sctypes`: the types of scalars by their kind."""
    import numpy as np

    return {
        "int": [np.int8, np.int16, np.int32, np.int64],
        "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
        "float": [np.float16, np.float32, np.float64, np.longdouble],
        "complex": [np.complex64, np.complex128, np.clongdouble],
        "others": [bool, object, bytes, str, np.void],
    }


def _random_integers(low: int, high: int | None = None, size: Any = None) -> Any:
    """`np.random.random_integers`: both ends are included."""
    import numpy as np

    note_once("numpy.random.random_integers", "numpy.random.randint")
    first, last = (1, low) if high is None else (low, high)
    return np.random.randint(first, last + 1, size)


def _find_common_type(array_types: Any, scalar_types: Any) -> Any:
    import numpy as np

    return np.result_type(*array_types, *scalar_types)
