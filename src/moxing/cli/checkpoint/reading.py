"""Finds and reads checkpoints of the V1 and V2 formats."""

from __future__ import annotations

import atexit
import math
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.file.urls import find_remote, local_path
from moxing.framework.util.owned_directory import OwnedDirectory
from moxing.tensorflow.datasets.stored.objects import require_remote
from moxing.tensorflow.executor.checkpoints.files import UNREADABLE, valid_checkpoints
from moxing.tensorflow.executor.store.fetching import fetch_checkpoint_path
from moxing.tensorflow.executor.store.shown_names import ShownNames

#: The last bytes of a V1 file and of a V2 index.
_TABLE_END = bytes.fromhex("57fb808b247547db")
_OTHER_FORMATS = {b"\x89HDF": " (it is an HDF5 file, such as Keras writes)", b"PK\x03\x04": " (it is a zip archive)"}
_CHUNK = 1 << 20

_SLOT = re.compile(
    r"/(Momentum|Adam|AdaMax|Nadam|RMSProp|Adagrad|AdagradDA|Adadelta|Ftrl|LARSOptimizer|LARS|LAMB)(_\d+)?$"
    r"|(^|/)beta[12]_power(_\d+)?$|/\.OPTIMIZER_SLOT/"
)


class Kind(NamedTuple):
    """Shape and type of a variable."""

    shape: tuple[int, ...]
    dtype: tf.DType

    @property
    def numbers(self) -> int:
        """The number of values."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The size of the values; 0 for text, whose size is unknown until it is read."""
        return self.numbers * int(self.dtype.size) if is_numeric(self.dtype) else 0


class Location(NamedTuple):
    """The files of a checkpoint.

    Attributes:
      prefix: its path without the suffixes of its files.
      version: `V1` or `V2`.
      files: the paths of its files.
    """

    prefix: str
    version: str
    files: list[str]


@dataclass(frozen=True)
class Checkpoint:
    """An open checkpoint.

    Attributes:
      location: its files.
      variables: shapes and types by name, sorted.
      url: the prefix on a store, if it was downloaded from there.
    """

    location: Location
    variables: Mapping[str, Kind]
    _reader: Any
    url: str | None = None

    @property
    def prefix(self) -> str:
        """Its local path without the suffixes of its files."""
        return self.location.prefix

    @property
    def version(self) -> str:
        """`V1` or `V2`."""
        return self.location.version

    @property
    def files(self) -> list[str]:
        """The local paths of its files."""
        return self.location.files

    @property
    def name(self) -> str:
        """Its url, or its prefix."""
        return self.url or self.prefix

    def read(self, name: str) -> np.ndarray:
        """Returns the values of a variable.

        Raises:
          ValueError: the values are damaged.
        """
        try:
            try:
                value = self._reader.get_tensor(name)
            except tf.errors.UnimplementedError:
                # A partitioned variable in a V1 file: only the restore operation joins its slices.
                value = self._restore(name)
        except UNREADABLE as error:
            raise ValueError(
                f"{self.name!r} is damaged: the values of {name} cannot be read ({reason(error)}). "
                "Copy the checkpoint again, or use an earlier one."
            ) from None
        # NumPy's type for bytes drops trailing zero bytes.
        return np.asarray(value, dtype=object if isinstance(value, bytes) else None)

    def _restore(self, name: str) -> Any:
        dtype = self.variables[name].dtype
        with tf.Graph().as_default(), tf.Session(config=cpu_only()) as session:
            return session.run(
                tf.raw_ops.RestoreV2(prefix=self.prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[dtype])
            )[0]


def cpu_only() -> tf.ConfigProto:
    """Returns the configuration of a session that uses no GPU."""
    return tf.ConfigProto(device_count={"GPU": 0})


def reason(error: BaseException) -> str:
    """Returns the line of a TensorFlow error that says what happened.

    Example:
      >>> reason(tf.errors.DataLossError(None, None, 'a block is bad\\nand more'))
      'a block is bad'
    """
    lines = [line.strip() for line in str(getattr(error, "message", "") or error).splitlines() if line.strip()]
    # Errors of a session start with the location where the operation was created.
    nodes = [number for number, line in enumerate(lines) if line.startswith("Node: ")]
    return next(iter(lines[nodes[0] + 1 :] if nodes else lines), type(error).__name__)


def is_numeric(dtype: tf.DType) -> bool:
    """Returns True for a type of numbers or booleans."""
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_complex or dtype.is_bool)


def is_slot(name: str, names: Collection[str]) -> bool:
    """Returns True if a variable belongs to an optimizer: by its suffix, or since its parent is in `names`.

    Example:
      >>> names = ['w', 'w/Momentum', 'w/MyOptimizer', 'w/ExponentialMovingAverage', 'beta1_power', 'net/w']
      >>> [name for name in names if is_slot(name, names)]
      ['w/Momentum', 'w/MyOptimizer', 'beta1_power']
    """
    above, _, last = name.rpartition("/")
    return bool(_SLOT.search(name)) or (above in names and last != "ExponentialMovingAverage")


def select(names: Iterable[str], pattern: str, argument: str) -> list[str]:
    """Returns the names that contain a regular expression.

    Raises:
      ValueError: no name matches, or the expression is invalid.

    Example:
      >>> select(['conv1/weights', 'logits/weights'], '^conv', '--like')
      ['conv1/weights']
    """
    known = list(names)
    chosen = [name for name in known if compiled(pattern, argument).search(name)]
    if not chosen:
        raise ValueError(f"{argument}={pattern!r} matches none of the {len(known):,} variables.")
    return chosen


def compiled(pattern: str, argument: str) -> re.Pattern[str]:
    """Compiles a regular expression; the error names the argument."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{argument}={pattern!r} is not a valid regular expression: {error}.") from None


def open_checkpoint(path: str, argument: str) -> Checkpoint:
    """Opens a checkpoint.

    Args:
      path: its prefix, one of its files, or its directory; a path or a url. Files of a url are downloaded, and removed
        when the process ends.
      argument: the name of the argument, for error messages.

    Raises:
      ValueError: there is no such checkpoint, or it is damaged.
    """
    if find_remote(path, argument) is not None:
        return _open_fetched(path, argument)
    path = local_path(path, argument)
    found = _find(path, argument)
    if set(found.prefix.replace("-?????-of-", "")) & set("*?[]\\"):
        # TensorFlow treats the path as a pattern.
        raise ValueError(
            f"{argument}={found.prefix!r}: TensorFlow cannot read a checkpoint whose path contains one of * ? [ ] \\. "
            "Rename it, or create a symbolic link and pass that."
        )
    for name in [f"{found.prefix}.index"] if found.version == "V2" else found.files:
        _check_table(name, argument)
    try:
        reader = tf.train.NewCheckpointReader(found.prefix)
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    except UNREADABLE as error:
        raise ValueError(
            f"{argument}={path!r}: {found.prefix!r} is damaged ({reason(error)}). Copy it again, or pass another one."
        ) from None
    checkpoint = Checkpoint(found, {name: Kind(tuple(shapes[name]), types[name]) for name in sorted(shapes)}, reader)
    _check_parts(checkpoint, argument)
    return checkpoint


def _open_fetched(url: str, argument: str) -> Checkpoint:
    directory = OwnedDirectory(tempfile.gettempdir(), "moxing-checkpoint-")
    atexit.register(directory.remove)
    # A subdirectory: downloaded files have the names of the store, which may equal that of the lock file.
    below = os.path.join(directory.path, "fetched")
    names = ShownNames()
    local, remote = fetch_checkpoint_path(require_remote(url, argument), below)
    names.add(below, remote.location.url)
    if local == below:
        for prefix in valid_checkpoints(below)[:1]:
            remote.fetch_checkpoint(prefix)
    try:
        found = open_checkpoint(local, argument)
    except ValueError as error:
        names.rename(error)
        raise
    return replace(found, url=names.shown(found.prefix))


def _find(path: str, argument: str) -> Location:
    if os.path.isfile(path) and os.path.basename(path) == "checkpoint":
        path = os.path.dirname(path) or "."
    if os.path.isdir(path):
        return _newest(path, argument)
    prefix = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5}|moxing\.json)$", "", path)
    found = _at(prefix)
    if found is not None:
        return found
    directory, base = os.path.split(prefix)
    if any(name.startswith(base + ".data-") for name in _names(directory)):
        raise ValueError(f"{argument}={path!r}: {prefix + '.index'!r} is missing; the data cannot be read without it.")
    others = sorted({os.path.basename(one.prefix) for one in _all(directory)})
    there = f" {directory or '.'!r} contains {', '.join(others[:8])}{', ...' if others[8:] else ''}." if others else ""
    raise ValueError(
        f"{argument}={path!r}: there is no such checkpoint.{there or ' Pass the directory of a training, or a prefix.'}"
    )


def _at(prefix: str) -> Location | None:
    """Returns the files of the checkpoint with this prefix, or None."""
    directory, base = os.path.split(prefix)
    if os.path.isfile(prefix + ".index"):
        return Location(prefix, "V2", [prefix + ".index", *_parts(directory, base + ".data")])
    stem = re.sub(r"-[\d?]{5}-of-\d{5}$", "", base)
    if stem == base and os.path.isfile(prefix):
        return Location(prefix, "V1", [prefix])
    files = _parts(directory, stem)
    if not files:
        return None
    return Location(os.path.join(directory, f"{stem}-?????-of-{files[0][-5:]}"), "V1", files)


def _parts(directory: str, stem: str) -> list[str]:
    """Returns the existing files `STEM-00000-of-00002` and so on."""
    named = re.compile(re.escape(stem) + r"-\d{5}-of-\d{5}")
    return [os.path.join(directory, name) for name in sorted(_names(directory)) if named.fullmatch(name)]


def _names(directory: str) -> list[str]:
    return os.listdir(directory or ".") if os.path.isdir(directory or ".") else []


def _newest(directory: str, argument: str) -> Location:
    for prefix in listed(directory):
        # The directory may have been moved: an absolute path then leads to nothing, or to another training.
        found = _at(os.path.join(directory, os.path.basename(prefix))) or _at(prefix)
        if found is not None:
            return found
        tf.logging.warning("%s names %s, which does not exist.", os.path.join(directory, "checkpoint"), prefix)
    there = _all(directory)
    if there:
        return max(there, key=_age)
    saved_model = os.path.join(directory, "variables", "variables")
    hint = f" It is a SavedModel: pass {saved_model!r}." if os.path.isfile(saved_model + ".index") else ""
    raise ValueError(f"{argument}={directory!r}: the directory contains no checkpoint.{hint}")


def listed(directory: str) -> list[str]:
    """Returns the checkpoints that the file `checkpoint` of a directory lists, newest first; empty without the file."""
    try:
        state = tf.train.get_checkpoint_state(directory)
    except UNREADABLE:
        state = None
    if state is None:
        return []
    return list(dict.fromkeys([state.model_checkpoint_path, *reversed(state.all_model_checkpoint_paths)]))


def _all(directory: str) -> list[Location]:
    """Returns all checkpoints in a directory, also those that the file `checkpoint` does not list."""
    paths = [os.path.join(directory, name) for name in _names(directory)]
    prefixes = {path.removesuffix(".index") for path in paths if path.endswith(".index") or _ends_like_a_table(path)}
    return [found for found in map(_at, sorted(prefixes)) if found is not None]


def _age(found: Location) -> tuple[int, float]:
    step = re.search(r"-(\d+)$", re.sub(r"-\?{5}-of-\d{5}$", "", found.prefix))
    # The step in the name counts more than the time, which copying changes.
    return int(step[1]) if step else -1, os.path.getmtime(found.files[0])


def _ends_like_a_table(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            stream.seek(-len(_TABLE_END), os.SEEK_END)
            return stream.read() == _TABLE_END
    except OSError:  # a directory, too short, or no permission
        return False


def _check_table(path: str, argument: str) -> None:
    with open(path, "rb") as stream:
        start = stream.read(4)
    if _ends_like_a_table(path):
        return
    what = "empty" if not start else f"not a checkpoint{_OTHER_FORMATS.get(start, ', or it is truncated')}"
    raise ValueError(
        f"{argument}: {path!r} is {what}. Expected a TensorFlow checkpoint: the prefix of .index and .data files, "
        "or a single file of the V1 format."
    )


def _check_parts(found: Checkpoint, argument: str) -> None:
    """Checks for missing and truncated files, which TensorFlow notices only when it reads values, and in V1 never."""
    files = [path for path in found.files if re.search(r"-\d{5}-of-\d{5}$", path)]
    totals = {path[-5:] for path in files}
    for total in totals:
        if sum(path.endswith(f"-of-{total}") for path in files) == int(total):
            break
    else:
        if files or found.version == "V2":
            stem = re.sub(r"-\d{5}-of-\d{5}$", "", files[0]) if files else f"{found.prefix}.data"
            present = f"{len(files)} of the {int(max(totals))}" if totals else "none of the"
            raise ValueError(f"{argument}: the checkpoint is incomplete: {present} files {stem}-* exist.")
    size, needed = sum(map(os.path.getsize, files)), sum(kind.bytes for kind in found.variables.values())
    if found.version == "V2" and size < needed:
        raise ValueError(
            f"{argument}: {found.prefix!r} is damaged: its values need {needed:,} bytes, its data files have {size:,}. "
            "Copy it again, or pass another one."
        )


def chunks(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the values in flat chunks, as 64-bit numbers: float, complex, or integers.

    Example:
      >>> [part.dtype.name for part in chunks(np.zeros([2, 2], np.float16))]
      ['float64']
    """
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        if part.dtype.kind == "b":
            yield part.astype(np.uint64)
        elif part.dtype.kind in "iuc":
            yield part.astype({"i": np.int64, "u": np.uint64, "c": np.complex128}[part.dtype.kind])
        else:  # also the small types that TensorFlow adds to NumPy
            yield part.astype(np.float64)
