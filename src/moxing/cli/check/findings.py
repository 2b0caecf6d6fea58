"""The typed result of a check: findings, one report per file, one for all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

#: It works; it fails; it fails, but only in a branch that the program does not need; something to know.
SERVED, MISSING, OPTIONAL, NOTE = "served", "missing", "optional", "note"


@dataclass(frozen=True)
class Finding:
    """One name, call or line, and the verdict.

    Attributes:
      kind: `import`, `package` (not installed), `name`, `call`, `syntax`, `native` (a compiled operation), `download`.
      status: `served`, `missing`, `optional` or `note`.
      name: the dotted name, as `tf.train.Saver`; the url of a download.
      lines: the lines where it is used.
      message: why it is missing and what to do; what to know.
      provider: the package that serves it.
    """

    kind: str
    status: str
    name: str
    lines: tuple[int, ...]
    message: str = ""
    provider: str = ""


@dataclass(frozen=True)
class FileReport:
    """The findings of one file.

    Attributes:
      path: the file, relative to what was checked.
      findings: all findings, in the order of their first lines.
      source: the text of the file.
    """

    path: str
    findings: tuple[Finding, ...]
    source: str = field(default="", repr=False)

    @property
    def judged(self) -> int:
        """The number of names, calls and lines that are served or missing."""
        return sum(one.status in (SERVED, MISSING) for one in self.findings)

    @property
    def missing(self) -> tuple[Finding, ...]:
        """What fails."""
        return tuple(one for one in self.findings if one.status == MISSING)

    @property
    def share(self) -> float:
        """The share of what is served, from 0 to 1; 1 for a file in which nothing was judged."""
        return _share(len(self.missing), self.judged)


@dataclass(frozen=True)
class Report:
    """The findings of all files.

    Example:
      >>> served = Finding('name', SERVED, 'tf.nn.relu', (3,), provider='TensorFlow')
      >>> lost = Finding('name', MISSING, 'tf.contrib.crf', (4,), 'use something else')
      >>> report = Report('train.py', (FileReport('train.py', (served, lost)),))
      >>> report.share, report.providers
      (0.5, {'TensorFlow': 1})
    """

    path: str
    files: tuple[FileReport, ...]

    @property
    def judged(self) -> int:
        """The number of names, calls and lines that are served or missing, summed over the files."""
        return sum(file.judged for file in self.files)

    @property
    def missing(self) -> int:
        """The number of what fails, summed over the files."""
        return sum(len(file.missing) for file in self.files)

    @property
    def share(self) -> float:
        """The share of what is served, from 0 to 1."""
        return _share(self.missing, self.judged)

    @property
    def providers(self) -> dict[str, int]:
        """How many different names each package serves, the largest number first."""
        served = {(one.provider, one.name) for file in self.files for one in file.findings if one.status == SERVED}
        counts = Counter(provider for provider, _ in served)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def as_json(self) -> dict[str, Any]:
        """Returns the report as JSON types."""
        return {
            "path": self.path,
            "share": round(self.share, 4),
            "judged": self.judged,
            "missing": self.missing,
            "served_by": self.providers,
            "files": [
                {
                    "path": file.path,
                    "share": round(file.share, 4),
                    "judged": file.judged,
                    "missing": len(file.missing),
                    "findings": [{**vars(one), "lines": list(one.lines)} for one in file.findings],
                }
                for file in self.files
            ],
        }


def _share(missing: int, judged: int) -> float:
    return 1.0 if judged == 0 else 1 - missing / judged


def percent(share: float) -> str:
    """Returns a share in percent. It is 100 % only if nothing is missing.

    Example:
      >>> percent(0.9999), percent(1.0)
      ('99 %', '100 %')
    """
    return f"{int(share * 100 + 1e-9)} %"
