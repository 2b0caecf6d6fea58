"""Lists the files of an image folder: `base_dir/<class>/<image>`."""

from __future__ import annotations

import errno
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from moxing.framework.file.entries import FileEntry
from moxing.framework.file.urls import Url, local_path
from moxing.tensorflow.datasets.stored.objects import StoredObject, is_stored, list_tree, require_remote, stored_object

#: Files and folders that systems and people put next to images.
_NEVER_SAMPLES = frozenset({"labels.txt", "thumbs.db", "desktop.ini", "__macosx"})
_OTHER_EXTENSIONS = frozenset(["txt", "md", "json", "csv", "xml", "html", "py", "zip", "tar", "gz", "pdf", "docx"])
_IMAGE_EXTENSIONS = frozenset(["jpg", "jpeg", "jpe", "jfif", "png", "bmp", "gif", "webp", "tif", "tiff"])
#: Local disks need few threads; network drives have a high latency per folder.
_THREADS = 16

Identity = tuple[int, int]


@dataclass(frozen=True)
class FileList:
    """The files below a directory.

    Attributes:
      files: the files, as sorted relative paths.
      ignored: how many entries were ignored, by kind.
      objects: on an object store, the listing's entry for each file.

    Example:
      >>> FileList(['a.jpg'], Counter({'.txt': 2})).ignored['.txt']
      2
    """

    files: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    objects: dict[str, StoredObject] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ImageFolder:
    """The files of an image folder.

    Attributes:
      base_dir: the absolute path, or the url.
      classes: the files of every class folder, as sorted paths relative to it; classes in the order of their names.
      top_files: the files outside the class folders, which belong to no class.
      ignored: how many entries of the class folders are not samples, by kind.
      argument: the caller's name for `base_dir`, for error messages.
      objects: on an object store, the listing's entry for each file, by its path relative to `base_dir`.

    Example:
      >>> ImageFolder('/data', {'daisy': ['a.jpg']}, ['b.JPG', 'README'], Counter()).stray_images
      ['b.JPG']
    """

    base_dir: str
    classes: dict[str, list[str]]
    top_files: list[str]
    ignored: Counter[str]
    argument: str = "base_dir"
    objects: dict[str, StoredObject] = field(default_factory=dict, repr=False)

    @property
    def stray_images(self) -> list[str]:
        """The images among `top_files`, by their extension."""
        return [name for name in self.top_files if _extension(name) in _IMAGE_EXTENSIONS]


def list_image_folder(base_dir: Url, argument: str = "base_dir") -> ImageFolder:
    """Lists the class folders in `base_dir` and their files.

    The name of a folder is the class; folders inside it belong to the same class. Links are followed. Hidden names,
    `labels.txt`, `Thumbs.db`, `desktop.ini` and `__MACOSX` are skipped. Files with the extension of something else
    (.txt .md .json .csv .xml .html .py .zip .tar .gz .pdf .docx) are ignored and counted. Every other file is a sample,
    whatever its extension: the content decides when it is read.

    Names are sorted by code point, on every file system. Bytes in a name that are not UTF-8 are decoded as in Python's
    file functions: `os.fsencode(path)` is the name on the disk.

    Args:
      base_dir: a local path or a url. On an object store there is one recursive listing.
      argument: the caller's name for `base_dir`, for error messages.

    Raises:
      ValueError: `base_dir` is not a directory.

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
    ignored = sum((listed.ignored for listed in found), Counter[str]())
    return ImageFolder(root, classes, sorted(top.files), ignored, argument)


def list_files(
    directory: str,
    above: frozenset[Identity] = frozenset(),
    other_extensions: frozenset[str] = _OTHER_EXTENSIONS,
) -> FileList:
    """Lists the files below one directory by the rules of `list_image_folder`.

    Args:
      directory: a local path or a url.
      above: the identities of the directories above, to which links must not lead back; `directory` is always included.
      other_extensions: the extensions to ignore, in lower case and without the dot.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     for name in ('b.png', 'a', '.hidden', 'notes.TXT'):
      ...         open(os.path.join(folder, name), 'w').close()
      ...     list_files(folder)
      FileList(files=['a', 'b.png'], ignored=Counter({'.txt': 1}))
    """
    if is_stored(directory):
        return _list_stored_files(directory, other_extensions)
    result = FileList()
    # No recursion: a tree may be deeper than Python's recursion limit.
    stack = [("", above | {_identity(directory)})]
    while stack:
        relative, above_here = stack.pop()
        for name in _scan(directory, relative, above_here, result, other_extensions):
            inner = f"{relative}{name}/"
            stack.append((inner, above_here | {_identity(os.path.join(directory, inner))}))
    result.files.sort()
    return result


def require_directory(url: Url, argument: str) -> str:
    """Returns the absolute local path, or the url, of a directory that exists.

    Raises:
      ValueError: it does not exist, or is a file.

    Example:
      >>> require_directory('/no/such/folder', 'base_dir')
      Traceback (most recent call last):
      ValueError: base_dir='/no/such/folder' does not exist: expected a directory.
    """
    if is_stored(url):
        remote = require_remote(url, argument)
        if not remote.backend.is_directory(remote.path):
            state = "does not exist" if remote.backend.stat(remote.path) is None else "is a file"
            raise ValueError(f"{argument}={remote.url!r} {state}: expected a directory.")
        return remote.url
    path = os.path.abspath(local_path(url, argument))
    if not os.path.isdir(path):
        state = "is a file" if os.path.exists(path) else "does not exist"
        raise ValueError(f"{argument}={path!r} {state}: expected a directory.")
    return path


def describe_ignored(ignored: Counter[str]) -> str:
    """Returns what was ignored, for a message; the most frequent first.

    Example:
      >>> describe_ignored(Counter({'broken link': 1, '.txt': 3}))
      '3 .txt, 1 broken link'
    """
    return ", ".join(f"{count} {kind}" for kind, count in sorted(ignored.items(), key=lambda item: (-item[1], item[0])))


def _scan(
    directory: str,
    relative: str,
    above: frozenset[Identity],
    result: FileList,
    other_extensions: frozenset[str] = _OTHER_EXTENSIONS,
) -> list[str]:
    """Adds the files of one directory to `result` and returns the names of its subdirectories."""
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
                    result.ignored[f".{extension}"] += 1
                else:
                    result.files.append(relative + name)
            elif kind != "folder":
                result.ignored[kind] += 1
            elif entry.is_symlink() and _identity(entry.path) in above:
                result.ignored["link to a folder above it"] += 1
            else:
                folders.append(name)
    return folders


def _list_stored_folder(base_dir: Url, argument: str) -> ImageFolder:
    remote = require_remote(base_dir, argument)
    folder = ImageFolder(remote.url, {}, [], Counter(), argument)
    for entry in list_tree(remote, argument):
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
            folder.ignored[kind] += 1
        elif kind is not None:
            folder.classes.setdefault(name, []).append(inner)
            folder.objects[entry.relative] = stored_object(remote, entry)
    ordered = {name: sorted(folder.classes[name]) for name in sorted(folder.classes)}
    folder.classes.clear()
    folder.classes.update(ordered)
    folder.top_files.sort()
    return folder


def _list_stored_files(directory: Url, other_extensions: frozenset[str]) -> FileList:
    remote = require_remote(directory, "directory")
    result = FileList()
    for entry in list_tree(remote, "directory"):
        kind = None if entry.is_directory else _stored_kind(entry, other_extensions)
        if kind:
            result.ignored[kind] += 1
        elif kind is not None:
            result.files.append(entry.relative)
            result.objects[entry.relative] = stored_object(remote, entry)
    result.files.sort()
    return result


def _stored_kind(entry: FileEntry, other_extensions: frozenset[str]) -> str | None:
    """Returns "" for a sample, None for an object to skip, else the kind under which it is ignored."""
    parts = entry.relative.split("/")
    if "" in parts:
        return "name with an empty part"  # not possible in a local copy
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
        if error.errno != errno.ELOOP:  # a link to itself is a broken link
            raise
        return "broken link"
    return "broken link" if entry.is_symlink() else "special file"


def _extension(name: str) -> str:
    dot = name.rfind(".")
    return name[dot + 1 :].lower() if dot > 0 else ""


def _identity(path: str) -> Identity:
    status = os.stat(path)
    return status.st_dev, status.st_ino
