"""`tf.contrib.learn.datasets`: data sets in memory, from files that are there. Nothing is downloaded."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from moxing.framework import file as mox_file
from moxing.tf1.contrib import _lazy

__path__: list[str] = []

__all__ = [
    "Dataset",
    "Datasets",
    "circles",
    "load_boston",
    "load_csv_with_header",
    "load_csv_without_header",
    "load_dataset",
    "load_iris",
    "maybe_download",
    "shrink_csv",
    "spirals",
]
_MNIST = "moxing.tf1.examples.tutorials.mnist.input_data:"
# The modules of the original package; this one has what was in them.
_NAMES = {"mnist": _MNIST, **dict.fromkeys(("base", "synthetic", "text_datasets"), f"{__name__}:")}
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


class Dataset(NamedTuple):
    """Rows of data and their targets."""

    data: Any
    target: Any


class Datasets(NamedTuple):
    """The parts of a data set."""

    train: Any
    validation: Any
    test: Any


def load_csv_with_header(filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """Reads a CSV file whose first line has the number of rows and the number of features.

    Args:
      filename: the file, local or a URL.
      target_dtype: the type of the targets.
      features_dtype: the type of the features.
      target_column: the column of the targets.

    Raises:
      ValueError: the file does not have the shape that its first line names.
    """
    rows = _rows(filename)
    try:
        samples, features = int(rows[0][0]), int(rows[0][1])
    except (IndexError, ValueError):
        first = rows[0] if rows else ""
        raise ValueError(
            f"{filename}: the first line must start with the number of rows and of features, got {first!r}. For a file "
            "without such a line use load_csv_without_header."
        ) from None
    found = _split(rows[1:], target_dtype, features_dtype, target_column)
    if found.data.shape != (samples, features):
        raise ValueError(
            f"{filename}: the first line says {samples} rows of {features} features, the file has {found.data.shape}."
        )
    return found


def load_csv_without_header(filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """Reads a CSV file of numbers."""
    return _split(_rows(filename), target_dtype, features_dtype, target_column)


def _rows(filename: str) -> list[list[str]]:
    with mox_file.File(filename, "r") as stream:
        return [row for row in csv.reader(stream.read().splitlines()) if row]


def _split(rows: list[list[str]], target_dtype: Any, features_dtype: Any, target_column: int) -> Dataset:
    targets = [row.pop(target_column) for row in rows]
    return Dataset(np.asarray(rows).astype(features_dtype), np.asarray(targets).astype(target_dtype))


def load_iris(data_path: str | None = None) -> Dataset:
    """Loads the 150 iris flowers, from a CSV file with a header line or from scikit-learn.

    Raises:
      ImportError: there is no path, and scikit-learn is not installed.
    """
    if data_path is not None:
        return load_csv_with_header(data_path, np.int64, np.float64)
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError("load_iris needs scikit-learn, or data_path with the file iris.csv.") from error
    found = datasets.load_iris()
    return Dataset(found.data, found.target)


def load_boston(data_path: str | None = None) -> Dataset:
    """Loads the Boston house prices from a CSV file with a header line.

    Raises:
      FileNotFoundError: there is no path. No package has this data set any more.
    """
    if data_path is None:
        raise FileNotFoundError(
            "load_boston: no package has this data set any more. Pass data_path, a CSV file with the header line "
            "'506,13' and 506 rows of 13 features and the price."
        )
    return load_csv_with_header(data_path, np.float64, np.float64)


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """Loads a data set by its name: iris, boston, mnist (from `MNIST-data`), circles or spirals.

    Raises:
      ValueError: there is no data set of this name, or it would have to be downloaded.
    """
    del size, test_with_fake_data
    if name == "mnist":
        return _lazy.resolve(f"{_MNIST}read_data_sets")("MNIST-data")
    if name == "dbpedia":
        _no_text(name)
    known: dict[str, Callable[[], Any]] = {
        "iris": load_iris,
        "boston": load_boston,
        "circles": circles,
        "spirals": spirals,
    }
    if name not in known:
        raise ValueError(f"load_dataset({name!r}): expected one of {', '.join(sorted([*known, 'mnist']))}.")
    return known[name]()


def _no_text(name: str) -> NoReturn:
    raise ValueError(
        f"the text data set {name!r} is not downloaded. Put its CSV file next to the program and read it with "
        "tf.contrib.learn.datasets.base.load_csv_without_header or pandas.read_csv."
    )


def load_dbpedia(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error: the data would have to be downloaded."""
    _no_text("dbpedia")


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """Returns the path of a file in `work_directory`.

    Raises:
      FileNotFoundError: it is not there. It is not downloaded.
    """
    path = os.path.join(work_directory, filename)
    if not mox_file.exists(path):
        raise FileNotFoundError(f"{path} does not exist. Nothing is downloaded: get it from {source_url}.")
    return path


def shrink_csv(filename: str, ratio: int) -> None:
    """Writes every `ratio`-th line of NAME.csv into NAME_small.csv."""
    with mox_file.File(filename, "r") as stream:
        lines = stream.read().splitlines(keepends=True)
    with mox_file.File(filename.replace(".", "_small."), "w") as small:
        small.write("".join(lines[::ratio]))


def circles(
    n_samples: int = 100, noise: float | None = None, seed: int | None = None, factor: float = 0.8, n_classes: int = 2
) -> Dataset:
    """Makes circles around the origin, one per class, each smaller by `factor`.

    Example:
      >>> data, target = circles(8, seed=1)
      >>> data.shape, sorted(target.tolist())
      ((8, 2), [0, 0, 0, 0, 1, 1, 1, 1])
    """
    if not 0 <= factor <= 1:
        raise ValueError(f"factor must be between 0 and 1, got {factor}")
    angles = np.linspace(0, 2 * np.pi, n_samples // n_classes)
    radii = [factor**number for number in range(n_classes)]
    x = np.concatenate([np.cos(angles) * radius for radius in radii])
    y = np.concatenate([np.sin(angles) * radius for radius in radii])
    return _shuffled(np.stack([x, y], 1), np.repeat(np.arange(n_classes), len(angles)), noise, seed)


def spirals(
    n_samples: int = 100, noise: float | None = None, seed: int | None = None, n_loops: int = 2, n_classes: int = 2
) -> Dataset:
    """Makes Archimedean spirals, one per class, each turned by its share of the circle."""
    points = np.arange(n_samples // n_classes)
    radius = points * (1.0 / max(len(points), 1))
    turns = [2 * np.pi * (radius * n_loops + number / n_classes) for number in range(n_classes)]
    x = np.concatenate([radius * np.cos(turn) for turn in turns])
    y = np.concatenate([radius * np.sin(turn) for turn in turns])
    return _shuffled(np.stack([x, y], 1), np.repeat(np.arange(n_classes), len(points)), noise, seed)


def _shuffled(data: np.ndarray, target: np.ndarray, noise: float | None, seed: int | None) -> Dataset:
    random = np.random if seed is None else np.random.RandomState(seed)
    order = random.permutation(len(data))
    data, target = data[order], target[order]
    if noise is not None:
        data = data + random.normal(scale=noise, size=data.shape)
    return Dataset(data, target)
