"""The manifest of a conversion: which files are complete, so that an interrupted conversion can be resumed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from moxing.framework import file
from moxing.tensorflow.datasets.tools.conversion_plan import shard_name

MANIFEST = ".moxing_convert.json"


@dataclass
class FinishedShard:
    """The manifest's entry for a complete file."""

    records: int = 0
    bytes: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    bad: list[dict[str, Any]] = field(default_factory=list)


def open_conversion(dst: str, order: Mapping[str, Any], overwrite: bool) -> dict[str, FinishedShard]:
    """Prepares `dst` for a conversion.

    Args:
      dst: the directory of the files.
      order: what identifies the conversion: its arguments and the digest of the images.
      overwrite: whether to remove the files of another conversion.

    Returns:
      The files that an earlier call has completed, by name.

    Raises:
      ValueError: `dst` holds another conversion or other records, and `overwrite` is False.
    """
    for name in os.listdir(dst):
        if name.startswith(".mox-") and name.endswith(".tmp"):  # left by a killed process
            os.unlink(os.path.join(dst, name))
    found = _read_manifest(dst)
    there = _existing_shards(dst, order, found)
    changed = [key for key, value in order.items() if found.get(key) != value]
    if found and not changed and not (overwrite and found.get("finished")):
        return {
            name: FinishedShard(**entry)
            for name, entry in found["done"].items()
            if name in there and os.path.getsize(os.path.join(dst, name)) == entry["bytes"]
        }
    if not overwrite and found:
        state = "a finished conversion" if found.get("finished") else "an interrupted conversion"
        causes = {
            "version": "another version of MoXing",
            "images": "other images",
            "shards": "another number of shards",
        }
        other = ", ".join(causes.get(key, f"another {key}") for key in changed)
        raise ValueError(
            f"dst_dir={dst!r} holds {state}, with {other} (see {MANIFEST}): repeat that call to resume it, pass "
            "another dst_dir, or replace its records with overwrite=True."
        )
    if not overwrite and there:
        raise ValueError(f"dst_dir={dst!r} has records already, {min(there)} for one: overwrite=True replaces them.")
    # Remove the manifest first: without it no file counts as complete.
    for name in [MANIFEST, *there]:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(dst, name))
    return {}


def write_manifest(dst: str, order: Mapping[str, Any], done: Mapping[str, FinishedShard], finished: bool) -> None:
    content = {**order, "finished": finished, "done": {name: asdict(entry) for name, entry in done.items()}}
    file.write(os.path.join(dst, MANIFEST), json.dumps(content) + "\n")


def _existing_shards(dst: str, *orders: Mapping[str, Any]) -> set[str]:
    """Returns the files whose names match those of a conversion, whatever their number."""
    names = {
        re.escape(shard_name(split, "\0", "\0", order.get("prefix"))).replace(re.escape("\0"), r"\d+")
        for order in orders
        for split in order.get("split_spec", ())
    }
    return {name for name in os.listdir(dst) if any(re.fullmatch(pattern, name) for pattern in names)}


def _read_manifest(dst: str) -> dict[str, Any]:
    try:
        found = json.loads(file.read(os.path.join(dst, MANIFEST)))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("done"), dict) else {}
