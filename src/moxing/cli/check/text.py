"""Prints a report on the terminal: the share of every file, what is missing and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moxing.cli.check.findings import MISSING, NOTE, OPTIONAL, SERVED, FileReport, Finding, Report, percent
from moxing.cli.output import file_count, show, show_table

#: The providers whose names are not listed: TensorFlow has most of them, and libraries only their modules.
_UNLISTED = "TensorFlow"
_MOST_LISTED = 6
_MOST_PLACES = 8

#: The kind of findings, and the section, for packages that are not installed.
_PACKAGE = "package"

#: What Python says before the reason, and the list of all that exists after it.
_BEFORE = re.compile(r"^(?:No module named '[^']*'|cannot import name '[^']*' from '[^']*'): (?=tf\.)")
_AFTER = re.compile(r"[.?]? tf\.contrib(?:\.\w+)? has: .*$", re.DOTALL)


def short(message: str) -> str:
    """Returns the reason alone, without the words of the import error and the list of all names that exist.

    Example:
      >>> short("No module named 'x.lite': tf.contrib.lite is not available; use tf.lite. tf.contrib has: a, b")
      'tf.contrib.lite is not available; use tf.lite'
    """
    return _AFTER.sub("", _BEFORE.sub("", message)).strip()


def print_report(report: Report, verbose: bool = False) -> None:
    """Prints a report.

    Args:
      report: the report.
      verbose: whether to print all files, all served names, and what the program does without.

    Example:
      >>> print_report(Report('train.py', (FileReport('train.py', ()),)))
      train.py: 100 %, 0 of 0 names are served
      Nothing is missing.
    """
    within = f" in {file_count(len(report.files))}" if len(report.files) > 1 else ""
    served = report.judged - report.missing
    show(f"{report.path}: {percent(report.share)}, {served} of {report.judged} names are served{within}")
    if len(report.files) > 1:
        _print_files(report, verbose)
    titles = {
        MISSING: "Missing:",
        _PACKAGE: "Not installed:",
        OPTIONAL: "Missing, but the program does without it (in `try`, or for another version):",
        NOTE: "Note:",
    }
    for section, title in titles.items():
        if section != OPTIONAL or verbose:
            _print_groups(title, report, section, None if verbose else _MOST_PLACES)
    _print_providers(report, verbose)
    _print_end(report, verbose)


def _print_files(report: Report, verbose: bool) -> None:
    listed = [file for file in report.files if verbose or file.missing]
    if not listed:
        return
    listed.sort(key=lambda file: (file.share, file.path))
    rows = [("file", "share", "names", "missing")]
    rows += [(file.path, percent(file.share), str(file.judged), str(len(file.missing))) for file in listed]
    show()
    show_table(rows)
    others = len(report.files) - len(listed)
    if others:
        show(f"  {file_count(others)} more: 100 %")


def _section(one: Finding) -> str:
    return _PACKAGE if one.status == MISSING and one.kind == _PACKAGE else one.status


def _print_groups(title: str, report: Report, section: str, most: int | None) -> None:
    """Prints the findings of a section, those with the same reason together, the most frequent first."""
    groups: dict[str, dict[str, list[str]]] = {}
    counts: dict[str, int] = {}
    for file in report.files:
        for one in file.findings:
            if _section(one) == section:
                reason = short(one.message)
                groups.setdefault(reason, {}).setdefault(one.name, []).append(_place(file, one.lines))
                counts[reason] = counts.get(reason, 0) + len(one.lines)
    if not groups:
        return
    show()
    show(title)
    for reason in sorted(groups, key=lambda text: (-counts[text], text)):
        listed = {name: _listed(places, most) for name, places in sorted(groups[reason].items())}
        if section == _PACKAGE:
            show(f"  {reason} ({', '.join(listed.values())})")
            continue
        show(f"  {reason}")
        for name, places in listed.items():
            show(f"    {name}: {places}")


def _listed(places: Sequence[str], most: int | None) -> str:
    more = f" and {file_count(len(places) - most)} more" if most is not None and len(places) > most else ""
    return ", ".join(places[:most]) + more


def _place(file: FileReport, lines: Iterable[int]) -> str:
    return f"{file.path}:{','.join(map(str, lines))}"


def _print_providers(report: Report, verbose: bool) -> None:
    if not report.providers:
        return
    names: dict[str, set[str]] = {}
    for file in report.files:
        for one in file.findings:
            if one.status == SERVED:
                names.setdefault(one.provider, set()).add(one.name)
    show()
    show("Served by:")
    for provider, count in report.providers.items():
        own = sorted(names[provider])
        listed = own if verbose else own[:_MOST_LISTED] if provider != _UNLISTED else []
        if own == [provider]:
            listed = []
        more = ", ..." if listed and len(listed) < count else ""
        show(f"  {provider} {count}" + (f": {', '.join(listed)}{more}" if listed else ""))


def _print_end(report: Report, verbose: bool) -> None:
    optional = sum(one.status == OPTIONAL for file in report.files for one in file.findings)
    if optional and not verbose:
        show()
        show(f"Not counted, since the program does without: {optional} (--verbose lists them)")
    if not report.missing:
        show("Nothing is missing.")
