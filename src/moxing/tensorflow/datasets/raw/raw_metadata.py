"""Metadata of a folder of images, known before any graph is built: its samples and its classes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import Url
from moxing.tensorflow.datasets.raw.class_order import log_class_order, order_classes
from moxing.tensorflow.datasets.raw.folders import (
    FileList,
    describe_ignored,
    list_files,
    list_image_folder,
    require_directory,
)
from moxing.tensorflow.datasets.raw.label_files import collect_label_names, match_label_files
from moxing.tensorflow.datasets.raw.labels import find_labels_file, read_labels
from moxing.tensorflow.datasets.stored.objects import StoredObject, is_stored


class _RawMetadata:
    """What both kinds of folder have: class names and samples."""

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

    The classes are numbered as in `labels.txt` (lines `0: daisy`). Without that file they are numbered in the order of
    their names, and a log line says so. See `folders.list_image_folder` for which files are samples.

    Attributes:
      total_num_samples: the number of images.
      num_classes: the number of classes.
      labels_list: the class names in the order of their labels.
      labels_to_names: the class names by label.
      names_to_labels: the labels by class name.
      paths: the absolute path or url of every image, by class and name; `os.fsencode` gives the bytes of a path.
      labels: the label of every image, an int64 array parallel to `paths`.
      class_counts: the number of images by class name.
      base_dir: the absolute path of the folder, or its url.
      objects: the object store's listing of every image, parallel to `paths`; None for images on a local disk.

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
        """Lists and checks the folder.

        Args:
          base_dir: the folder with one folder per class, a path or a url.
          redirect_dir: a copy of `base_dir`, for instance on a faster disk. Classes and file names come from
            `base_dir`; the images are read at the same relative paths below `redirect_dir`.
          labels_filename: the file in `base_dir` that numbers the classes; None to use none. Only the default file may
            be missing.

        Raises:
          ValueError: there are no images, a class has none, the labels file does not fit the folders, or a directory
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


class MultilabelClassificationRawMetadata(_RawMetadata):
    """Images with any number of labels each: `images/0.jpg` with its label names in `labels/0.jpg.txt`.

    The labels are numbered as in `labels.txt`. Without that file all label files are read, and the names are numbered
    in their order. The separator of the names is then guessed: line ends if any file has several lines, otherwise white
    space; a log line says which.

    Attributes:
      total_num_samples: the number of images, those without a label file included.
      num_classes: the number of classes.
      labels_list: the class names in the order of their labels.
      labels_to_names: the class names by label.
      names_to_labels: the labels by class name.
      paths: the absolute path or url of every image, sorted. `os.fsencode` gives the bytes of a path.
      label_paths: the label file of every image, parallel to `paths`; None for an image without one.
      guessed_label_sep: the separator that was guessed, None with a `labels.txt`.
      base_dir: the absolute path of the folder, or its url.
      objects: the object store's listing of every image, parallel to `paths`; None for images on a local disk.

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
        """Lists and checks the folder.

        Args:
          base_dir: the folder that contains the other two, a path or a url.
          images_sub_dir: the folder of the images, relative to `base_dir`.
          labels_sub_dir: the folder of the label files, relative to `base_dir`.
          labels_extension: the extension of a label file, after the whole name of its image.
          redirect_dir: a copy of `base_dir`, for instance on a faster disk. File names and `labels.txt` come from
            `base_dir`; images and label files are read at the same relative paths below `redirect_dir`.
          labels_filename: the file in `base_dir` that numbers the labels; None to use none. Only the default file may
            be missing.

        Raises:
          ValueError: there are no images, none has a label file, or a directory does not exist.
        """
        base = require_directory(base_dir, "base_dir")
        if not isinstance(labels_extension, str) or not labels_extension.strip("."):
            raise ValueError(f"labels_extension={labels_extension!r}: expected an extension such as 'txt'.")
        listed = _list_images(_sub_directory(base, images_sub_dir, "images_sub_dir"))
        images, found = listed.files, listed.objects
        labels_dir = _sub_directory(base, labels_sub_dir, "labels_sub_dir")
        label_files = match_label_files(images, labels_dir, "." + labels_extension.lstrip("."))
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
            names, self.guessed_label_sep = collect_label_names(labels_dir, self.label_paths)
            separator = "line ends" if self.guessed_label_sep == "\n" else "white space"
            order = f"of the names in the label files, which were split at {separator}"
            log_class_order(base, names, labels_filename, order)
        paths = [os.path.join(root, images_sub_dir, name) for name in images]
        super().__init__(base, names, paths, _objects(os.path.join(root, images_sub_dir), images, found))


def _sub_directory(base: str, name: str, argument: str) -> str:
    path = os.path.join(base, name)
    if not file.is_directory(path):
        raise ValueError(f"{argument}={name!r}: base_dir={base!r} has no such folder.")
    return path


def _list_images(images_dir: str) -> FileList:
    listed = list_files(images_dir)
    ignored = describe_ignored(listed.ignored)
    if not listed.files:
        raise ValueError(f"There are no images in {images_dir!r}{ignored and f', only {ignored}'}.")
    if ignored:
        tf.logging.info("Ignored in %r, not images: %s.", images_dir, ignored)
    return listed


def _objects(root: str, relative: Sequence[str], found: Mapping[str, StoredObject]) -> list[StoredObject] | None:
    """Returns the objects of images on a store. One that a copy in `redirect_dir` lacks fails when it is read."""
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
                f"redirect_dir={redirect_dir!r} is not a copy of base_dir: there is no file {path!r}. "
                "Expected the same folders and files as in base_dir."
            )
