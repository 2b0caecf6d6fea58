"""Which files are in an image folder: `base_dir/<class>/<image>`."""

from __future__ import annotations

import errno
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.paths import Url, local_path
from moxing.tensorflow.datasets.stored.objects import StoredObject, is_stored, list_tree, require_place, stored_object

#: Files and folders that systems and people put beside images.
_NEVER_SAMPLES = frozenset({"labels.txt", "thumbs.db", "desktop.ini", "__macosx"})
_OTHER_EXTENSIONS = frozenset(["txt", "md", "json", "csv", "xml", "html", "py", "zip", "tar", "gz", "pdf", "docx"])
_IMAGE_EXTENSIONS = frozenset(["jpg", "jpeg", "jpe", "jfif", "png", "bmp", "gif", "webp", "tif", "tiff"])
#: Local disks need few; a network drive answers each folder late, so that several are asked at once.
_THREADS = 16

Identity = tuple[int, int]


@dataclass(frozen=True)
class FileList:
    """Files below a directory, as sorted relative paths, and what was left out: kind to number.

    On an object store `objects` has what the listing says of each file.

    Example:
      >>> FileList(['a.jpg'], Counter({'.txt': 2})).left_out['.txt']
      2
    """

    files: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    objects: dict[str, StoredObject] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ImageFolder:
    """What `list_image_folder` found.

    Attributes:
      base_dir: The absolute path, or the url.
      classes: The files of every class folder, as sorted paths relative to it; classes in the order of their names.
      top_files: The files beside the class folders, which belong to no class.
      left_out: What is no sample in the class folders: kind to number.
      argument: The caller's name for `base_dir`, for error messages.
      objects: On an object store, what the listing says of each file, by its path relative to `base_dir`.

    Example:
      >>> ImageFolder('/data', {'daisy': ['a.jpg']}, ['b.JPG', 'README'], Counter()).stray_images
      ['b.JPG']
    """

    base_dir: str
    classes: dict[str, list[str]]
    top_files: list[str]
    left_out: Counter[str]
    argument: str = "base_dir"
    objects: dict[str, StoredObject] = field(default_factory=dict, repr=False)

    @property
    def stray_images(self) -> list[str]:
        """Those of `top_files` that are images by their name."""
        return [name for name in self.top_files if _extension(name) in _IMAGE_EXTENSIONS]


def list_image_folder(base_dir: Url, argument: str = "base_dir") -> ImageFolder:
    """Lists the class folders in `base_dir` and their files.

    The name of a folder is the class; folders in it belong to the same class. Links are followed. Hidden names,
    `labels.txt`, `Thumbs.db`, `desktop.ini` and `__MACOSX` are passed over. Files that are something else by their
    extension (.txt .md .json .csv .xml .html .py .zip .tar .gz .pdf .docx) are left out and counted. Every other file
    is a sample, whatever its extension: its content decides when it is read.

    The order is that of the code points in the names, on every file system. Bytes in a name that are no UTF-8 are kept
    as Python's file functions keep them: `os.fsencode(path)` is the name on the disk.

    Args:
      base_dir: A local path or a url. On an object store all is listed at once.
      argument: The caller's name for `base_dir`, for error messages.

    Raises:
      ValueError: `base_dir` is no directory.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.makedirs(folder + '/daisy/more')
      ...     open(folder + '/daisy/more/a.JPG', 'w').close()
      ...     list_image_folder(folder).classes
      {'daisy': ['more/a.JPG']}
    """
    if is_stored(base_dir):
        return _list_stored_folder(base_dir, argument)
    root = require_directory(base_dir, argument)
    above = frozenset({_identity(root)})
    top = FileList()
    names = sorted(_scan(root, "", above, top))
    with ThreadPoolExecutor(max_workers=min(_THREADS, len(names)) or 1, thread_name_prefix="mox-list") as pool:
        found = list(pool.map(lambda name: list_files(os.path.join(root, name), above), names))
    classes = {name: listed.files for name, listed in zip(names, found, strict=True)}
    left_out = sum((listed.left_out for listed in found), Counter[str]())
    return ImageFolder(root, classes, sorted(top.files), left_out, argument)


def list_files(
    directory: str,
    above: frozenset[Identity] = frozenset(),
    other_extensions: frozenset[str] = _OTHER_EXTENSIONS,
) -> FileList:
    """Lists the files below one directory by the rules of `list_image_folder`.

    Args:
      directory: A local path or a url.
      above: The identities of directories that a link below must not lead back to; `directory` itself is one anyway.
      other_extensions: The extensions to leave out, in lower case and without the dot.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     for name in ('b.png', 'a', '.hidden', 'notes.TXT'):
      ...         open(os.path.join(folder, name), 'w').close()
      ...     list_files(folder)
      FileList(files=['a', 'b.png'], left_out=Counter({'.txt': 1}))
    """
    if is_stored(directory):
        return _list_stored_files(directory, other_extensions)
    result = FileList()
    # A stack and no recursion: a tree may be deeper than Python's recursion limit.
    stack = [("", above | {_identity(directory)})]
    while stack:
        relative, above_here = stack.pop()
        for name in _scan(directory, relative, above_here, result, other_extensions):
            inner = f"{relative}{name}/"
            stack.append((inner, above_here | {_identity(os.path.join(directory, inner))}))
    result.files.sort()
    return result


def require_directory(url: Url, argument: str) -> str:
    """The absolute local path, or the url, of a directory that exists.

    Raises:
      ValueError: It does not exist, or is a file.

    Example:
      >>> require_directory('/no/such/folder', 'base_dir')
      Traceback (most recent call last):
      ValueError: base_dir='/no/such/folder' does not exist: expected a directory.
    """
    if is_stored(url):
        place = require_place(url, argument)
        if not place.backend.is_directory(place.path):
            state = "does not exist" if place.backend.stat(place.path) is None else "is a file"
            raise ValueError(f"{argument}={place.url!r} {state}: expected a directory.")
        return place.url
    path = os.path.abspath(local_path(url, argument))
    if not os.path.isdir(path):
        state = "is a file" if os.path.exists(path) else "does not exist"
        raise ValueError(f"{argument}={path!r} {state}: expected a directory.")
    return path


def describe_left_out(left_out: Counter[str]) -> str:
    """What was left out, for a message; the most frequent first.

    Example:
      >>> describe_left_out(Counter({'broken link': 1, '.txt': 3}))
      '3 .txt, 1 broken link'
    """
    return ", ".join(
        f"{count} {kind}" for kind, count in sorted(left_out.items(), key=lambda item: (-item[1], item[0]))
    )


def _scan(
    directory: str,
    relative: str,
    above: frozenset[Identity],
    result: FileList,
    other_extensions: frozenset[str] = _OTHER_EXTENSIONS,
) -> list[str]:
    """Adds the files of one directory to `result` and returns the names of the directories to go on with."""
    folders = []
    with os.scandir(os.path.join(directory, relative)) as entries:
        for entry in entries:
            name = entry.name
            if not _is_visible(name):
                continue
            kind = _kind(entry)
            if kind == "file":
                extension = _extension(name)
                if extension in other_extensions:
                    result.left_out[f".{extension}"] += 1
                else:
                    result.files.append(relative + name)
            elif kind != "folder":
                result.left_out[kind] += 1
            elif entry.is_symlink() and _identity(entry.path) in above:
                result.left_out["link to a folder above it"] += 1
            else:
                folders.append(name)
    return folders


def _list_stored_folder(base_dir: Url, argument: str) -> ImageFolder:
    place = require_place(base_dir, argument)
    folder = ImageFolder(place.url, {}, [], Counter(), argument)
    for entry in list_tree(place, argument):
        name, slash, inner = entry.relative.partition("/")
        if entry.is_directory:
            if not slash and _is_visible(name):
                folder.classes.setdefault(name, [])
            continue
        kind = _stored_kind(entry, _OTHER_EXTENSIONS)
        if not slash:
            if kind == "":
                folder.top_files.append(name)
        elif kind:
            folder.left_out[kind] += 1
        elif kind is not None:
            folder.classes.setdefault(name, []).append(inner)
            folder.objects[entry.relative] = stored_object(place, entry)
    ordered = {name: sorted(folder.classes[name]) for name in sorted(folder.classes)}
    folder.classes.clear()
    folder.classes.update(ordered)
    folder.top_files.sort()
    return folder


def _list_stored_files(directory: Url, other_extensions: frozenset[str]) -> FileList:
    place = require_place(directory, "directory")
    result = FileList()
    for entry in list_tree(place, "directory"):
        kind = None if entry.is_directory else _stored_kind(entry, other_extensions)
        if kind:
            result.left_out[kind] += 1
        elif kind is not None:
            result.files.append(entry.relative)
            result.objects[entry.relative] = stored_object(place, entry)
    result.files.sort()
    return result


def _stored_kind(entry: RemoteEntry, other_extensions: frozenset[str]) -> str | None:
    """Empty for a sample, None for what is passed over, else why an object is left out."""
    parts = entry.relative.split("/")
    if "" in parts:
        return "name with an empty part"  # no local copy could have it
    if not all(map(_is_visible, parts)):
        return None
    extension = _extension(parts[-1])
    return f".{extension}" if extension in other_extensions else ""


def _is_visible(name: str) -> bool:
    return bool(name) and name[0] != "." and name.lower() not in _NEVER_SAMPLES


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_file():
            return "file"
        if entry.is_dir():
            return "folder"
    except OSError as error:
        if error.errno != errno.ELOOP:  # a link to itself is as broken as a link to nothing
            raise
        return "broken link"
    return "broken link" if entry.is_symlink() else "special file"


def _extension(name: str) -> str:
    dot = name.rfind(".")
    return name[dot + 1 :].lower() if dot > 0 else ""


def _identity(path: str) -> Identity:
    status = os.stat(path)
    return status.st_dev, status.st_ino
