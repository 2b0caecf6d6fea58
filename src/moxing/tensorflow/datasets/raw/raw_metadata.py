"""What is known of a folder of images before any graph is built: its samples and its classes."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.paths import Url
from moxing.tensorflow.datasets.raw.folders import (
    FileList,
    ImageFolder,
    describe_left_out,
    list_files,
    list_image_folder,
    require_directory,
)
from moxing.tensorflow.datasets.raw.labels import decode_text, fits_labels_file, read_labels, split_lines
from moxing.tensorflow.datasets.stored.look_ahead import requests_at_once
from moxing.tensorflow.datasets.stored.objects import StoredObject, describe_object, is_stored

_SHOWN = 10
_SPLIT_NAMES = frozenset({"train", "eval", "val", "valid", "validation", "test"})
_READ_THREADS = 16


class _RawMetadata:
    """Names of classes and numbers of samples, which both kinds of folder have."""

    def __init__(
        self, base_dir: str, names: Sequence[str], paths: list[str], objects: list[StoredObject] | None = None
    ) -> None:
        self.base_dir = base_dir
        self.paths = paths
        self.objects = objects
        self.labels_list = list(names)
        self.labels_to_names = dict(enumerate(names))
        self.names_to_labels = {name: index for index, name in enumerate(names)}

    @property
    def total_num_samples(self) -> int:
        """The number of images."""
        return len(self.paths)

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return len(self.labels_list)


class ImageClassificationRawMetadata(_RawMetadata):
    """The images below `base_dir/<class>/` and their classes. It builds no graph: create it anywhere.

    The classes are numbered as in `labels.txt` (lines `0: daisy`). Where there is none, they are numbered in the order
    of their names and a log line says so. See `folders.list_image_folder` for which files are samples.

    Attributes:
      total_num_samples: The number of images.
      num_classes: The number of classes.
      labels_list: The class names in the order of their indices.
      labels_to_names: The class names by index.
      names_to_labels: The indices by class name.
      paths: The absolute path or url of every image, by class and then by name. `os.fsencode` gives a name's bytes.
      labels: The class index of every image, an int64 array parallel to `paths`.
      class_counts: The number of images by class name.
      base_dir: The absolute path of the folder, or its url.
      objects: What an object store says of every image, parallel to `paths`; None for images on a local disk.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     for name in ('roses', 'daisy'):
      ...         os.mkdir(f'{folder}/{name}')
      ...         open(f'{folder}/{name}/0.jpg', 'w').close()
      ...     metadata = ImageClassificationRawMetadata(folder)
      >>> metadata.total_num_samples, metadata.num_classes, metadata.labels_list
      (2, 2, ['daisy', 'roses'])
    """

    def __init__(
        self, base_dir: Url, redirect_dir: Url | None = None, labels_filename: str | None = "labels.txt"
    ) -> None:
        """Lists the folder and checks it.

        Args:
          base_dir: The folder with one folder per class, a path or a url.
          redirect_dir: A copy of `base_dir`, for instance on a faster disk. Classes and file names come from
            `base_dir`, the images are read at the same relative paths below `redirect_dir`.
          labels_filename: The file in `base_dir` that numbers the classes; None not to look for one. Only the default
            one may be missing.

        Raises:
          ValueError: There are no images, a class has none, the labels file does not fit the folders, or a directory
            does not exist.
        """
        folder = list_image_folder(base_dir)
        names = order_classes(folder, labels_filename)
        root, found = folder.base_dir, folder.objects
        if redirect_dir is not None:
            root = require_directory(redirect_dir, "redirect_dir")
            found = list_files(root).objects if is_stored(root) else {}
            _check_redirected(root, (os.path.join(name, folder.classes[name][0]) for name in names), found)
        relative = [f"{name}/{inner}" for name in names for inner in folder.classes[name]]
        objects = _objects(root, relative, found)
        if objects is None:
            paths = [f"{root.rstrip('/')}/{inner}" for inner in relative]
        else:
            paths = [item.url for item in objects]
        super().__init__(folder.base_dir, names, paths, objects)
        self.class_counts = {name: len(folder.classes[name]) for name in names}
        self.labels: np.ndarray = np.repeat(np.arange(len(names), dtype=np.int64), list(self.class_counts.values()))


def order_classes(folder: ImageFolder, labels_filename: str | None) -> list[str]:
    """The class names of a folder in the order of their indices, after all checks of the folder.

    Args:
      folder: What was found.
      labels_filename: As in `ImageClassificationRawMetadata`.

    Raises:
      ValueError: As in `ImageClassificationRawMetadata`.

    Example:
      >>> from collections import Counter
      >>> order_classes(ImageFolder('/data', {'daisy': ['0.jpg'], 'roses': ['0.jpg']}, [], Counter()), None)
      ['daisy', 'roses']
    """
    _require_samples(folder)
    _require_names(folder)
    labels_path = find_labels_file(folder.base_dir, labels_filename)
    names = list(folder.classes)
    if labels_path is not None:
        names = read_labels(labels_path)
        _check_labels(names, folder, labels_path)
    empty = [name for name in names if not folder.classes[name]]
    if empty:
        raise ValueError(
            f"{folder.argument}={folder.base_dir!r}: there are no images in the class folders {_some(empty)}"
            f"{_left_out_note(folder)}. Put images there or remove the folders and their labels."
        )
    if labels_path is None:
        _log_order(folder.base_dir, names, labels_filename, "of their names")
    _warn(folder)
    return names


def find_labels_file(base_dir: str, labels_filename: str | None) -> str | None:
    """The path of the labels file, None where there is none.

    Raises:
      ValueError: A file other than the default `labels.txt` was named and is missing.

    Example:
      >>> find_labels_file('/no/such/folder', 'labels.txt') is None
      True
    """
    if labels_filename is None:
        return None
    if not isinstance(labels_filename, str) or not labels_filename:
        raise ValueError(f"labels_filename={labels_filename!r}: expected the name of a file in base_dir, or None.")
    path = os.path.join(base_dir, labels_filename)
    if _is_file(path):
        return path
    if labels_filename != "labels.txt":
        raise ValueError(
            f"labels_filename={labels_filename!r}: there is no file {path!r}. None looks for no labels file."
        )
    return None


def _is_file(path: str) -> bool:
    if is_stored(path):
        return describe_object(path) is not None
    return os.path.lexists(path) and not os.path.isdir(path)


class MultilabelClassificationRawMetadata(_RawMetadata):
    """Images that may have several labels each: `images/0.jpg` with its label names in `labels/0.jpg.txt`.

    The labels are numbered as in `labels.txt`. Where there is none, all label files are read and the names are numbered
    in their order. What separates the names is then guessed: line ends if any file has several lines, otherwise white
    space; a log line says which.

    Attributes:
      total_num_samples: The number of images, those without a label file included.
      num_classes: The number of labels.
      labels_list: The label names in the order of their indices.
      labels_to_names: The label names by index.
      names_to_labels: The indices by label name.
      paths: The absolute path or url of every image, sorted. `os.fsencode` gives the bytes of a name.
      label_paths: The label file of every image, parallel to `paths`; None for an image without one.
      guessed_label_sep: The separator that was guessed, None with a `labels.txt`.
      base_dir: The absolute path of the folder, or its url.
      objects: What an object store says of every image, parallel to `paths`; None for images on a local disk.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.mkdir(folder + '/images')
      ...     os.mkdir(folder + '/labels')
      ...     for name, content in (('images/0.jpg', ''), ('labels/0.jpg.txt', 'cat dog')):
      ...         with open(f'{folder}/{name}', 'w') as stream:
      ...             _ = stream.write(content)
      ...     metadata = MultilabelClassificationRawMetadata(folder)
      >>> metadata.total_num_samples, metadata.labels_list, metadata.guessed_label_sep
      (1, ['cat', 'dog'], ' ')
    """

    def __init__(
        self,
        base_dir: Url,
        images_sub_dir: str = "images",
        labels_sub_dir: str = "labels",
        labels_extension: str = "txt",
        redirect_dir: Url | None = None,
        labels_filename: str | None = "labels.txt",
    ) -> None:
        """Lists the folder and checks it.

        Args:
          base_dir: The folder that has the other two, a path or a url.
          images_sub_dir: The folder of the images, relative to `base_dir`.
          labels_sub_dir: The folder of the label files, relative to `base_dir`.
          labels_extension: What a label file has after the whole name of its image and a dot.
          redirect_dir: A copy of `base_dir`, for instance on a faster disk: file names and `labels.txt` come from
            `base_dir`, images and label files are read at the same relative paths below `redirect_dir`.
          labels_filename: The file in `base_dir` that numbers the labels; None not to look for one. Only the default
            one may be missing.

        Raises:
          ValueError: There are no images, none has a label file, or a directory does not exist.
        """
        base = require_directory(base_dir, "base_dir")
        if not isinstance(labels_extension, str) or not labels_extension.strip("."):
            raise ValueError(f"labels_extension={labels_extension!r}: expected an extension such as 'txt'.")
        listed = _list_images(_sub_directory(base, images_sub_dir, "images_sub_dir"))
        images, found = listed.files, listed.objects
        labels_dir = _sub_directory(base, labels_sub_dir, "labels_sub_dir")
        label_files = _match_label_files(images, labels_dir, "." + labels_extension.lstrip("."))
        root = base
        if redirect_dir is not None:
            root = require_directory(redirect_dir, "redirect_dir")
            found = list_files(os.path.join(root, images_sub_dir)).objects if is_stored(root) else {}
            first_label_file = next(name for name in label_files if name is not None)
            first = (os.path.join(images_sub_dir, images[0]), os.path.join(labels_sub_dir, first_label_file))
            _check_redirected(root, first)
        self.label_paths = [None if name is None else os.path.join(root, labels_sub_dir, name) for name in label_files]
        self.guessed_label_sep: str | None = None
        labels_path = find_labels_file(base, labels_filename)
        if labels_path is not None:
            names = read_labels(labels_path)
        else:
            names, self.guessed_label_sep = _collect_names(labels_dir, self.label_paths)
            places = "line ends" if self.guessed_label_sep == "\n" else "white space"
            _log_order(base, names, labels_filename, f"of the names in the label files, which were split at {places}")
        paths = [os.path.join(root, images_sub_dir, name) for name in images]
        super().__init__(base, names, paths, _objects(os.path.join(root, images_sub_dir), images, found))


def read_sample_labels(path: Url, label_sep: str = "\n") -> list[str]:
    """The label names in the label file of one image, each once, in the order of the file.

    Args:
      path: The label file.
      label_sep: What separates two names. A line end always does; `' '` stands for any white space.

    Raises:
      ValueError: `label_sep` is no str or empty.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile() as stream:
      ...     _ = stream.write(b'red rose, daisy')
      ...     stream.flush()
      ...     read_sample_labels(stream.name, ',')
      ['red rose', 'daisy']
    """
    if not isinstance(label_sep, str) or not label_sep:
        raise ValueError(f"label_sep={label_sep!r}: expected a separator such as '\\n' or ','.")
    parts: list[str] = []
    for line in _read_label_lines(path):
        if label_sep == " ":
            parts.extend(line.split())
        else:
            parts.extend(part.strip() for part in line.split(label_sep))
    return [name for name in dict.fromkeys(parts) if name]


def _read_label_lines(path: Url) -> list[str]:
    lines = split_lines(decode_text(file.read(path, binary=True)))
    return [stripped for line in lines if (stripped := line.strip())]


def read_in_threads(read: Callable[[str], Any], paths: Sequence[str]) -> list[Any]:
    """Calls `read` for each of `paths`, many at once where they lie on a store.

    Example:
      >>> read_in_threads(len, ['a', 'bc'])
      [1, 2]
    """
    threads = requests_at_once(_READ_THREADS) if paths and is_stored(paths[0]) else _READ_THREADS
    with ThreadPoolExecutor(threads, thread_name_prefix="mox-labels") as pool:
        return list(pool.map(read, paths))


def _collect_names(labels_dir: str, label_paths: Iterable[str | None]) -> tuple[list[str], str]:
    """All names in the label files, sorted, and the separator that was guessed."""
    contents = read_in_threads(_read_label_lines, [path for path in label_paths if path is not None])
    distinct = {line for lines in contents for line in lines}
    if not distinct:
        raise ValueError(
            f"The label files in {labels_dir!r} are all empty: expected label names in them, or a labels.txt."
        )
    if any(len(lines) > 1 for lines in contents) or not any(len(line.split()) > 1 for line in distinct):
        return sorted(distinct), "\n"
    return sorted({name for line in distinct for name in line.split()}), " "


def _sub_directory(base: str, name: str, argument: str) -> str:
    path = os.path.join(base, name)
    if not file.is_directory(path):
        raise ValueError(f"{argument}={name!r}: base_dir={base!r} has no such folder.")
    return path


def _list_images(images_dir: str) -> FileList:
    listed = list_files(images_dir)
    left_out = describe_left_out(listed.left_out)
    if not listed.files:
        raise ValueError(f"There are no images in {images_dir!r}{left_out and f', only {left_out}'}.")
    if left_out:
        tf.logging.info("Left out in %r, which are no images: %s.", images_dir, left_out)
    return listed


def _match_label_files(images: Sequence[str], labels_dir: str, ending: str) -> list[str | None]:
    """The label file of every image, relative to `labels_dir`, None where it has none."""
    # Nothing is left out by its extension: the caller says which one label files have.
    found = set(list_files(labels_dir, other_extensions=frozenset()).files)
    matched = [name + ending if name + ending in found else None for name in images]
    unused = sorted(name for name in found.difference(matched) if name.endswith(ending))
    if all(name is None for name in matched):
        raise ValueError(
            f"No image has a label file in {labels_dir!r}: expected for instance {images[0] + ending!r}, "
            f"found {_some(sorted(found)) or 'nothing'}."
        )
    if unused:
        tf.logging.warning(
            "%d label files in %r belong to no image and are not used: %s.", len(unused), labels_dir, _some(unused, 3)
        )
    return matched


def _require_samples(folder: ImageFolder) -> None:
    if any(folder.classes.values()):
        return
    if folder.classes:
        found = f"its folders are all empty: {_some(list(folder.classes))}{_left_out_note(folder)}"
    elif folder.top_files:
        found = f"it has only files, no class folders: {_some(folder.top_files)}"
    else:
        found = "there is nothing in it"
    raise ValueError(
        f"{folder.argument}={folder.base_dir!r} has no images, {found}. Expected {folder.argument}/<class>/<image>."
    )


def _require_names(folder: ImageFolder) -> None:
    # Refused at once: the names go into a labels file beside the checkpoints, where it would be found out later.
    unfit = [name for name in folder.classes if not fits_labels_file(name)]
    if unfit:
        raise ValueError(
            f"{folder.argument}={folder.base_dir!r}: a class folder needs a name that can stand in labels.txt, without "
            f"line breaks and without spaces at the ends. Rename {_some(unfit)}."
        )


def _check_labels(names: Sequence[str], folder: ImageFolder, labels_path: str) -> None:
    known = set(names)
    without_folder = [name for name in names if name not in folder.classes]
    without_label = [name for name in folder.classes if name not in known]
    problems = []
    if without_folder:
        problems.append(
            f"labels without a folder: {_with_hints(without_folder, without_label or list(folder.classes))}"
        )
    if without_label:
        problems.append(f"folders without a label: {_with_hints(without_label, without_folder or names)}")
    if problems:
        raise ValueError(f"{labels_path!r} does not fit the folders in {folder.base_dir!r}: {'; '.join(problems)}.")


def _with_hints(names: Sequence[str], others: Sequence[str]) -> str:
    """`names` with the nearest of `others` for each."""
    composed = {unicodedata.normalize("NFC", other): other for other in others}
    lower = {other.lower(): other for other in others}
    shown = []
    for name in names[:_SHOWN]:
        near = get_close_matches(name, others, n=1)
        same = composed.get(unicodedata.normalize("NFC", name), name)
        if same != name:
            # Written by a Mac, most often. Printed they look the same, so the code points are shown.
            hint = f" (the same letters as {ascii(same)}, but in another Unicode form)"
        elif name.lower() in lower or near:
            hint = f" (near {lower.get(name.lower()) or near[0]!r})"
        else:
            hint = ""
        shown.append(f"{name!r}{hint}")
    return ", ".join(shown) + _more(len(names), _SHOWN)


def _warn(folder: ImageFolder) -> None:
    """Says what is allowed but seldom meant."""
    if folder.left_out:
        tf.logging.info("Left out in %r, which are no images: %s.", folder.base_dir, describe_left_out(folder.left_out))
    if _SPLIT_NAMES.issuperset(folder.classes):
        tf.logging.warning(
            "The folders in %s=%r are called %s and are taken as classes. If they hold the class folders, "
            "give one of them.",
            folder.argument,
            folder.base_dir,
            _some(list(folder.classes)),
        )
    stray = folder.stray_images
    if stray:
        tf.logging.warning(
            "%d images lie in %s=%r itself, beside the class folders, and are not used: %s.",
            len(stray),
            folder.argument,
            folder.base_dir,
            _some(stray, 3),
        )


def _log_order(base_dir: str, names: Sequence[str], labels_filename: str | None, order: str) -> None:
    reason = "No labels file is used for" if labels_filename is None else f"There is no {labels_filename} in"
    numbered = ", ".join(f"{index}: {name!r}" for index, name in enumerate(names[:_SHOWN]))
    text = f"{numbered}{_more(len(names), _SHOWN)}"
    tf.logging.info("%s %r: the classes are numbered in the order %s: %s.", reason, base_dir, order, text)


def _objects(root: str, relative: Sequence[str], found: Mapping[str, StoredObject]) -> list[StoredObject] | None:
    """The objects of images on a store. One that a copy in `redirect_dir` lacks shows when it is read."""
    if not is_stored(root):
        return None
    return [found.get(inner) or StoredObject(f"{root}/{inner}", -1, "") for inner in relative]


def _check_redirected(
    redirect_dir: str, relative_paths: Iterable[str], found: Mapping[str, StoredObject] | None = None
) -> None:
    for relative in relative_paths:
        path = os.path.join(redirect_dir, relative)
        if relative not in found if found else not (file.exists(path) and not file.is_directory(path)):
            raise ValueError(
                f"redirect_dir={redirect_dir!r} is no copy of base_dir: there is no file {path!r}. "
                "Expected the same folders and files as in base_dir."
            )


def _left_out_note(folder: ImageFolder) -> str:
    return f" (no images: {describe_left_out(folder.left_out)})" if folder.left_out else ""


def _some(names: Sequence[str], shown: int = _SHOWN) -> str:
    return ", ".join(repr(name) for name in names[:shown]) + _more(len(names), shown)


def _more(count: int, shown: int) -> str:
    return f" and {count - shown} more" if count > shown else ""
