"""A report as one HTML file: the source lines with the findings below them, no external resources."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from moxing.cli.check.findings import MISSING, NOTE, OPTIONAL, SERVED, FileReport, Finding, Report, percent

_STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --back: #ffffff; --line: #d0d7de; --dim: #59636e; --bad: #cf222e;
  --bad-back: #ffebe9; --note: #0969da; --note-back: #ddf4ff; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --back: #0d1117; --line: #30363d; --dim: #9198a1;
  --bad: #ff7b72; --bad-back: #3c1618; --note: #79c0ff; --note-back: #10233d; --good: #56d364; } }
body { margin: 2em auto; max-width: 75em; padding: 0 1em; color: var(--text); background: var(--back);
  font: 15px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; } th, td { padding: .15em 1em .15em 0; text-align: left; }
td.number, th.number { text-align: right; } a { color: var(--note); }
details { margin: 1em 0; border: 1px solid var(--line); border-radius: 6px; }
summary { padding: .5em 1em; cursor: pointer; } .dim { color: var(--dim); } .bad { color: var(--bad); }
.good { color: var(--good); }
pre { margin: 0; padding: .5em 0; overflow-x: auto; border-top: 1px solid var(--line);
  font: 13px/1.45 ui-monospace, monospace; }
pre > span { display: block; padding: 0 1em 0 0; } pre i { display: inline-block; width: 4em; padding-right: 1em;
  text-align: right; color: var(--dim); font-style: normal; user-select: none; }
.missing { background: var(--bad-back); } .note, .optional { background: var(--note-back); }
.why { padding-left: 5em !important; white-space: pre-wrap; color: var(--bad); background: var(--bad-back); }
.why.note, .why.optional { color: var(--note); background: var(--note-back); }
"""


def page(report: Report) -> str:
    """Returns the page.

    Example:
      >>> text = page(Report('<b>.py', (FileReport('<b>.py', (), 'x = "</pre>"'),)))
      >>> '<b>' in text, '&lt;/pre&gt;' in text
      (False, True)
    """
    title = f"moxing check {report.path}"
    served = report.judged - report.missing
    rows = "".join(_row(number, file) for number, file in enumerate(report.files))
    providers = ", ".join(f"{escape(name)} {count}" for name, count in report.providers.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n"
        f"<p>{_colored(report.share)}: {served} of {report.judged} names are served.</p>\n"
        f"<p>Served by: {providers or 'nothing was used'}</p>\n"
        '<table>\n<tr><th>file</th><th class="number">share</th><th class="number">names</th>'
        f'<th class="number">missing</th></tr>\n{rows}</table>\n'
        + "".join(_file(number, file) for number, file in enumerate(report.files))
        + "</body>\n</html>\n"
    )


def _colored(share: float) -> str:
    return f'<strong class="{"good" if share == 1 else "bad"}">{percent(share)}</strong>'


def _row(number: int, file: FileReport) -> str:
    return (
        f'<tr><td><a href="#f{number}">{escape(file.path)}</a></td><td class="number">{_colored(file.share)}</td>'
        f'<td class="number">{file.judged}</td><td class="number">{len(file.missing)}</td></tr>\n'
    )


def _file(number: int, file: FileReport) -> str:
    by_line: dict[int, list[Finding]] = {}
    for one in file.findings:
        for line in one.lines:
            by_line.setdefault(line, []).append(one)
    # Not splitlines, which also splits at form feeds and other characters that Python does not count as ends of lines.
    lines = file.source.rstrip("\n").split("\n")
    body = "".join(_line(index, text, by_line.get(index, ())) for index, text in enumerate(lines, 1))
    is_open = " open" if file.missing else ""
    return (
        f'<details id="f{number}"{is_open}>\n<summary><strong>{escape(file.path)}</strong> {_colored(file.share)} '
        f'<span class="dim">{file.judged} names, {len(file.missing)} missing</span></summary>\n<pre>{body}</pre>\n'
        "</details>\n"
    )


def _line(number: int, text: str, findings: Iterable[Finding]) -> str:
    served = sorted(f"{one.name}: {one.provider}" for one in findings if one.status == SERVED)
    others = [one for one in findings if one.status != SERVED]
    status = next((kind for kind in (MISSING, NOTE, OPTIONAL) for one in others if one.status == kind), "")
    title = f' title="{escape(", ".join(served))}"' if served else ""
    marked = f' class="{status}"' if status else ""
    row = f"<span{marked}{title}><i>{number}</i>{escape(text)}</span>"
    for one in others:
        row += f'<span class="why {one.status}">{escape(one.name)}: {escape(one.message)}</span>'
    return row
