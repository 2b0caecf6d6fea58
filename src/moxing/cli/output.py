"""Formats what the commands print, and parses values that several of them take."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Sequence

from moxing.framework.util.terminal import is_terminal

#: All but newline and tab, which tables have.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def show(text: str = "") -> None:
    """Prints a line. Characters that the terminal cannot show, and undecodable bytes of file names, become `?`.

    So do control characters on a terminal: a file name could change colors, the title or the cursor.

    Example:
      >>> show('a\\udcff')
      a?
    """
    encoding = sys.stdout.encoding or "utf-8"
    if is_terminal(sys.stdout):
        text = _CONTROL.sub("?", text)
    print(text.encode(encoding, "replace").decode(encoding))


def show_table(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> None:
    """Prints rows in columns.

    Args:
      rows: the cells of each row.
      left: the columns to align left; the others are aligned right.

    Example:
      >>> show_table([('split', 'files'), ('train', '9')])
        split  files
        train      9
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        show(f"  {'  '.join(cells)}".rstrip())


def parse_splits(text: str) -> dict[str, float]:
    """Parses `train:0.9,eval:0.1`.

    Example:
      >>> parse_splits('train:0.9,eval:0.1')
      {'train': 0.9, 'eval': 0.1}
    """
    result: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.strip().rpartition(":")
        try:
            fraction = float(number)
        except ValueError:
            fraction = 0.0
        if not name or name in result or not fraction:
            raise argparse.ArgumentTypeError(f"{text!r}: expected splits and fractions such as train:0.9,eval:0.1")
        result[name] = fraction
    return result


def megabytes(count: int) -> str:
    """Returns a size in megabytes.

    Example:
      >>> megabytes(1_500_000)
      '1.5 MB'
    """
    return f"{count / 1e6:,.1f} MB"


def human_size(count: int) -> str:
    """Returns a size with a suitable unit.

    Example:
      >>> human_size(999), human_size(1_500), human_size(2_345_678_901)
      ('999 B', '1.5 kB', '2.3 GB')
    """
    if count < 1000:
        return f"{count} B"
    size, units = count / 1000, ["kB", "MB", "GB", "TB", "PB"]
    while size >= 999.95 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"{size:.1f} {units[0]}"


def file_count(count: int) -> str:
    """Returns a number of files in words.

    Example:
      >>> file_count(1), file_count(2000)
      ('1 file', '2,000 files')
    """
    return f"{count:,} file{'' if count == 1 else 's'}"


def format_counts(counts: dict[str, int]) -> str:
    """Returns the counts in words, the largest first.

    Example:
      >>> format_counts({'PNG': 1, 'JPEG': 1200})
      '1,200 JPEG, 1 PNG'
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in ordered)
