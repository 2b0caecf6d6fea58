"""Shared by the command lines of the benchmarks: the environment of a run, comma-separated options."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Optional(Protocol):
    """A program that needs an optional package."""

    @property
    def title(self) -> str: ...

    @property
    def package(self) -> str: ...


def surroundings(settings: str) -> dict[str, str]:
    """Return machine, date, versions and settings."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    load, _, _ = os.getloadavg()
    versions = [f"Python {platform.python_version()}"]
    for package in ("tensorflow", "tf_keras", "torch", "moxing-tensorflow"):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "machine": f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.datetime.now().astimezone().isoformat(" ", "minutes"),
        "versions": ", ".join(versions),
        "settings": settings,
        "load before": f"{load:.2f}" + (" - the machine is busy, the figures mean little" if load > 0.5 else ""),
    }


def chosen(option: str, text: str, known: list[str]) -> list[str]:
    """Return the values of a comma-separated option, in the order of `known`."""
    words = text.split(",")
    unknown = [word for word in words if word not in known]
    if unknown:
        raise SystemExit(f"{option} {text}: {', '.join(map(repr, unknown))} unknown. There are: {','.join(known)}")
    return [word for word in known if word in words]


def installed(names: list[str], peers: Mapping[str, Optional]) -> list[str]:
    """Return those of `names` whose package is installed; report the others."""
    for name in names:
        if importlib.util.find_spec(peers[name].package) is None:
            print(f"{peers[name].title} is left out: {peers[name].package} is not installed", file=sys.stderr)
    return [name for name in names if importlib.util.find_spec(peers[name].package)]
