"""Tables of the outcomes of `tf1_programs.py`, for the pages docs/compatibility.md and docs/zh-CN/compatibility.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

START, END = "<!-- corpus: start -->", "<!-- corpus: end -->"
HEADINGS = {
    "en": ("repository", "programs", "ended well", "was training", "unclear", "failed", "program", "cause", "All"),
    "zh-CN": ("仓库", "程序数", "正常结束", "停止时仍在正常训练", "未能判断", "失败", "程序", "原因", "合计"),
}
RAN = ("ended", "trained")
OUTCOMES = (*RAN, "unclear", "failed")


def merge_json(path: Path, results: Iterable[Mapping[str, Any]]) -> None:
    """Writes results to a file; those of other programs in it stay."""
    old = json.loads(path.read_text()) if path.exists() else []
    by_name = {(one["repository"], one["command"]): one for one in [*old, *results]}
    path.write_text(json.dumps(list(by_name.values()), indent=1) + "\n")


def summary(results: list[Mapping[str, Any]]) -> str:
    """Returns one line with the rate.

    Example:
      >>> summary([{"outcome": "ended"}, {"outcome": "failed"}])
      '1 of 2 programs ran (50%): 1 ended well, 0 were training when they were stopped, 0 are unclear, 1 failed'
    """
    count = {name: sum(one["outcome"] == name for one in results) for name in OUTCOMES}
    ran = count["ended"] + count["trained"]
    rate = 100 * ran / max(1, len(results))
    return (
        f"{ran} of {len(results)} programs ran ({rate:.0f}%): {count['ended']} ended well, "
        f"{count['trained']} were training when they were stopped, {count['unclear']} are unclear, "
        f"{count['failed']} failed"
    )


def replace_table(page: Path, results: list[Mapping[str, Any]]) -> None:
    """Replaces what is between the two comments of a page by the tables of the results."""
    language = "zh-CN" if "zh-CN" in page.parts else "en"
    head, _, rest = page.read_text().partition(START)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{START}\n{tables(results, language)}\n{END}{tail}")


def tables(results: list[Mapping[str, Any]], language: str) -> str:
    """Returns the table of the repositories, and that of the failures if there are any."""
    words = HEADINGS[language]
    lines = [row(words[:6]), row(["---"] + ["---:"] * 5)]
    for repository in sorted({one["repository"] for one in results}, key=str.lower):
        lines.append(counted(f"`{repository}`", [one for one in results if one["repository"] == repository]))
    lines.append(counted(f"**{words[8]}**", results))
    failures = [one for one in results if one["outcome"] not in RAN]
    if failures:
        lines += ["", row([words[0], words[6], words[7]]), row(["---"] * 3)]
    for one in failures:
        cause = one["cause"].replace("|", "\\|").replace("<", "&lt;")
        lines.append(row([f"`{one['repository']}`", f"`{one['command']}`", cause]))
    return "\n".join(lines)


def counted(name: str, results: list[Mapping[str, Any]]) -> str:
    outcomes = [one["outcome"] for one in results]
    return row([name, len(outcomes), *(outcomes.count(kind) for kind in OUTCOMES)])


def row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
