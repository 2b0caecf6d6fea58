"""The order of the classes of an image folder, and the checks of the folder."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.raw.folders import ImageFolder, describe_ignored
from moxing.tensorflow.datasets.raw.labels import find_labels_file, fits_labels_file, read_labels

_MAX_LISTED = 10
_SPLIT_NAMES = frozenset({"train", "eval", "val", "valid", "validation", "test"})


def order_classes(folder: ImageFolder, labels_filename: str | None) -> list[str]:
    """Checks an image folder and returns its class names in the order of their labels.

    Args:
      folder: the listing of the folder.
      labels_filename: as in `ImageClassificationRawMetadata`.

    Raises:
      ValueError: as in `ImageClassificationRawMetadata`.

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
            f"{folder.argument}={folder.base_dir!r}: there are no images in the class folders {quote_names(empty)}"
            f"{_ignored_note(folder)}. Put images there or remove the folders and their labels."
        )
    if labels_path is None:
        log_class_order(folder.base_dir, names, labels_filename, "of their names")
    _warn(folder)
    return names


def log_class_order(base_dir: str, names: Sequence[str], labels_filename: str | None, order: str) -> None:
    """Logs how the classes are numbered without a labels file."""
    reason = "No labels file is used for" if labels_filename is None else f"There is no {labels_filename} in"
    numbered = ", ".join(f"{index}: {name!r}" for index, name in enumerate(names[:_MAX_LISTED]))
    text = f"{numbered}{_more(len(names), _MAX_LISTED)}"
    tf.logging.info("%s %r: the classes are numbered in the order %s: %s.", reason, base_dir, order, text)


def quote_names(names: Sequence[str], most: int = _MAX_LISTED) -> str:
    """Returns the first names for a message.

    Example:
      >>> quote_names(['a', 'b', 'c'], most=2)
      "'a', 'b' and 1 more"
    """
    return ", ".join(repr(name) for name in names[:most]) + _more(len(names), most)


def _require_samples(folder: ImageFolder) -> None:
    if any(folder.classes.values()):
        return
    if folder.classes:
        found = f"its folders are all empty: {quote_names(list(folder.classes))}{_ignored_note(folder)}"
    elif folder.top_files:
        found = f"it has only files, no class folders: {quote_names(folder.top_files)}"
    else:
        found = "it is empty"
    raise ValueError(
        f"{folder.argument}={folder.base_dir!r} has no images, {found}. Expected {folder.argument}/<class>/<image>."
    )


def _require_names(folder: ImageFolder) -> None:
    # Checked now: the names are later written to a labels.txt next to the checkpoints.
    unfit = [name for name in folder.classes if not fits_labels_file(name)]
    if unfit:
        raise ValueError(
            f"{folder.argument}={folder.base_dir!r}: the name of a class folder must fit into labels.txt: no line "
            f"breaks, no spaces at the ends. Rename {quote_names(unfit)}."
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
    """Returns `names` for a message, each with the nearest of `others`."""
    composed = {unicodedata.normalize("NFC", other): other for other in others}
    lower = {other.lower(): other for other in others}
    shown = []
    for name in names[:_MAX_LISTED]:
        near = get_close_matches(name, others, n=1)
        same = composed.get(unicodedata.normalize("NFC", name), name)
        if same != name:
            # Usually written by macOS. Both look the same when printed, so show the code points.
            hint = f" (the same letters as {ascii(same)}, but in another Unicode form)"
        elif name.lower() in lower or near:
            hint = f" (near {lower.get(name.lower()) or near[0]!r})"
        else:
            hint = ""
        shown.append(f"{name!r}{hint}")
    return ", ".join(shown) + _more(len(names), _MAX_LISTED)


def _warn(folder: ImageFolder) -> None:
    """Logs what is allowed but rarely intended."""
    if folder.ignored:
        tf.logging.info("Ignored in %r, not images: %s.", folder.base_dir, describe_ignored(folder.ignored))
    if _SPLIT_NAMES.issuperset(folder.classes):
        tf.logging.warning(
            "The folders in %s=%r are called %s and count as classes. If they contain the class folders, "
            "pass one of them instead.",
            folder.argument,
            folder.base_dir,
            quote_names(list(folder.classes)),
        )
    if folder.top_files and folder.stray_images:
        tf.logging.warning(
            "%d images lie in %s=%r itself, outside the class folders, and are not used: %s.",
            len(folder.stray_images),
            folder.argument,
            folder.base_dir,
            quote_names(folder.stray_images, 3),
        )


def _ignored_note(folder: ImageFolder) -> str:
    return f" (not images: {describe_ignored(folder.ignored)})" if folder.ignored else ""


def _more(count: int, shown: int) -> str:
    return f" and {count - shown} more" if count > shown else ""
