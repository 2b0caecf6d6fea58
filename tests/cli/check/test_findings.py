"""Shares and counts of a report."""

import json

from moxing.cli.check.findings import MISSING, NOTE, OPTIONAL, SERVED, FileReport, Finding, Report, percent


def finding(status, name, provider=""):
    return Finding("name", status, name, (1,), "why" if status == MISSING else "", provider)


A = FileReport("a.py", (finding(SERVED, "x", "TensorFlow"), finding(OPTIONAL, "y"), finding(NOTE, "z")))
B = FileReport("b.py", (finding(SERVED, "x", "TensorFlow"), finding(SERVED, "w", "MoXing"), finding(MISSING, "v")))


def test_shares():
    report = Report("p", (A, B))
    assert (A.share, round(B.share, 2), report.share) == (1.0, 0.67, 0.75)
    assert (report.judged, report.missing, report.providers) == (4, 1, {"MoXing": 1, "TensorFlow": 1})
    assert FileReport("c.py", ()).share == 1.0


def test_percent_never_rounds_up():
    assert [percent(share) for share in (0.996, 1 - 1 / 10_000, 0.29, 1.0)] == ["99 %", "99 %", "29 %", "100 %"]


def test_json():
    told = json.loads(json.dumps(Report("p", (A, B)).as_json()))
    assert told["share"] == 0.75 and told["served_by"] == {"MoXing": 1, "TensorFlow": 1}
    assert told["files"][1]["findings"][2] == {
        "kind": "name",
        "status": "missing",
        "name": "v",
        "lines": [1],
        "message": "why",
        "provider": "",
    }
