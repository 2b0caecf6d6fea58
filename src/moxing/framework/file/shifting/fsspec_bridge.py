"""Serves `s3://` and `obs://` to libraries that open URLs through fsspec, such as pandas, after `shift`."""

from __future__ import annotations

from typing import Any

from fsspec.registry import _registry, register_implementation
from fsspec.spec import AbstractFileSystem

from moxing.framework.file import file_object, listing, operations

_SCHEMES = ("s3", "obs")
_replaced: dict[str, Any] = {}


class _Bridge(AbstractFileSystem):
    """A file system of fsspec on top of `mox.file`."""

    cachable = False
    scheme = ""

    def _url(self, path: str) -> str:
        return f"{self.scheme}://{self._strip_protocol(path)}"

    def _open(self, path: str, mode: str = "rb", **_: Any) -> file_object.File:
        return file_object.File(self._url(path), mode)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        found = operations.stat(self._url(path))
        kind = "directory" if found.is_directory else "file"
        return {"name": self._strip_protocol(path), "size": found.length, "type": kind, "mtime": found.st_mtime}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        url = self._url(path)
        if not operations.stat(url).is_directory:
            return [self.info(path)] if detail else [self._strip_protocol(path)]
        with listing.scan_dir(url) as entries:
            found = [(self._strip_protocol(entry.path), entry.is_dir(), entry.stat()) for entry in entries]
        if not detail:
            return [name for name, _, _ in found]
        kinds = {True: "directory", False: "file"}
        return [{"name": name, "size": stat.length, "type": kinds[is_dir]} for name, is_dir, stat in found]

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        operations.make_dirs(self._url(path))

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        operations.make_dirs(self._url(path))

    def rm_file(self, path: str) -> None:
        operations.remove(self._url(path))

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        operations.remove(self._url(path), recursive=recursive)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        from moxing.framework.file.copying.copy import copy

        copy(self._url(path1), self._url(path2))


def install() -> None:
    """Registers `mox.file` with fsspec for `s3://` and `obs://`."""
    for scheme in _SCHEMES:
        if scheme not in _replaced:
            # fsspec exposes the registry read-only; register_implementation changes it.
            _replaced[scheme] = _registry.get(scheme)
            bridge = type(f"Mox{scheme.upper()}FileSystem", (_Bridge,), {"protocol": scheme, "scheme": scheme})
            register_implementation(scheme, bridge, clobber=True)


def uninstall() -> None:
    """Restores the previous registrations."""
    for scheme, previous in list(_replaced.items()):
        del _replaced[scheme]
        if previous is None:
            _registry.pop(scheme, None)
        else:
            register_implementation(scheme, previous, clobber=True)
