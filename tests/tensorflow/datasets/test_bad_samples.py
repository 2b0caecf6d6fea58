"""The log of bad samples: how many bad samples are allowed, what is written, what an error says."""

from __future__ import annotations

import json
import os
import threading

import pytest

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.datasets.bad_samples import (
    FILE_NAME,
    BadSample,
    BadSampleLog,
    TooManyBadSamplesError,
    allowed_bad_samples,
    current_bad_sample_log,
    open_bad_sample_log,
)


def bad(number: int) -> BadSample:
    return BadSample(f"/data/{number}.jpg", None, "truncated")


def listed(path) -> list[dict]:
    content = (path / FILE_NAME).read_bytes().decode("utf-8", "surrogateescape")
    return [json.loads(line) for line in content.splitlines()]


@pytest.mark.parametrize(
    ("flag", "read", "allowed"),
    [
        ("0.1%", 1, 1),
        ("0.1%", 1999, 1),
        ("0.1%", 2000, 2),
        ("1%", 1000, 10),
        ("100%", 7, 7),
        ("0%", 10**6, 0),
        ("5", 1, 5),
        (" 5 ", 10**6, 5),
        ("0", 10**6, 0),
    ],
)
def test_allowed(flag, read, allowed):
    FLAGS.set("max_bad_samples", flag)
    assert allowed_bad_samples(read) == allowed


@pytest.mark.parametrize("flag", ["-1", "some", "", "%", "101%", "-1%", "nan%", "1.5", "5%%"])
def test_a_wrong_flag_is_named(flag):
    FLAGS.set("max_bad_samples", flag)
    with pytest.raises(FlagError, match="max_bad_samples") as error:
        allowed_bad_samples(100)
    assert repr(flag) in str(error.value)


def test_too_many_lists_the_files_and_the_way_out(tmp_path):
    FLAGS.set("max_bad_samples", "12")
    bad_samples = BadSampleLog(str(tmp_path))
    for number in range(12):
        bad_samples.add(bad(number), read=50)
    with pytest.raises(TooManyBadSamplesError) as error:
        bad_samples.add(bad(12), read=60)
    text = str(error.value)
    assert bad_samples.failure is error.value
    assert "13 bad samples among 60" in text
    assert "--max_bad_samples=12 allows 12" in text
    assert "/data/9.jpg: truncated" in text and "/data/10.jpg" not in text and "and 3 more" in text
    assert str(tmp_path / FILE_NAME) in text
    assert [entry["file"] for entry in listed(tmp_path)] == [f"/data/{number}.jpg" for number in range(13)]
    with pytest.raises(TooManyBadSamplesError):
        bad_samples.add(bad(13), read=61)
    assert len(bad_samples.samples) == 13


def test_a_sample_counts_once_however_often_it_is_met(tmp_path):
    FLAGS.set("max_bad_samples", "1")
    bad_samples = BadSampleLog(str(tmp_path))
    for epoch in range(3):
        bad_samples.add(bad(1), read=epoch * 10 + 1)
    assert bad_samples.samples == (bad(1),)
    assert listed(tmp_path) == [{"file": "/data/1.jpg", "offset": None, "reason": "truncated"}]
    assert "Skipped 1 bad sample:" in bad_samples.report()


def test_records_of_one_file_are_told_apart():
    FLAGS.set("max_bad_samples", "2")
    bad_samples = BadSampleLog(None)
    for offset in (0, 100):
        bad_samples.add(BadSample("a.tfrecord", offset, "checksum"), read=5)
    assert [str(sample) for sample in bad_samples.samples] == [
        f"a.tfrecord at byte {offset}: checksum" for offset in (0, 100)
    ]


def test_nothing_to_report():
    assert BadSampleLog(None).report() is None


def test_a_resumed_run_adds_only_what_is_new(tmp_path):
    FLAGS.set("max_bad_samples", "9")
    for numbers in ([0, 1], [1, 2], [0, 1, 2]):
        bad_samples = BadSampleLog(str(tmp_path))
        for number in numbers:
            bad_samples.add(bad(number), read=10)
        assert len(bad_samples.samples) == len(numbers)
    assert [entry["file"] for entry in listed(tmp_path)] == [f"/data/{number}.jpg" for number in range(3)]


WITHOUT_LINE_END = '{"file": "/data/1.jpg", "offset": null, "reason": "x"}'


@pytest.mark.parametrize("rest", ['{"file": "/data/1.jp', WITHOUT_LINE_END, "[]\n"])
def test_a_cut_last_line_harms_no_other_line(tmp_path, rest):
    FLAGS.set("max_bad_samples", "9")
    BadSampleLog(str(tmp_path)).add(bad(0), read=10)
    with open(tmp_path / FILE_NAME, "a") as file:
        file.write(rest)
    bad_samples = BadSampleLog(str(tmp_path))
    for number in (0, 1, 2):
        bad_samples.add(bad(number), read=10)
    lines = (tmp_path / FILE_NAME).read_text().splitlines()
    whole = [json.loads(line)["file"] for line in lines if line.startswith("{") and line.endswith("}")]
    assert whole == [f"/data/{number}.jpg" for number in range(3)]
    assert len(lines) == 3 + (rest != WITHOUT_LINE_END)


def test_names_that_are_not_utf8(tmp_path):
    FLAGS.set("max_bad_samples", "1")
    names = [os.fsdecode(b"/data/\xff\n%d.jpg" % number) for number in range(2)]
    bad_samples = BadSampleLog(str(tmp_path))
    bad_samples.add(BadSample(names[0], None, "leer \u2028 \u00fc"), read=10)
    assert listed_bytes(tmp_path)["file"] == names[0]
    with pytest.raises(TooManyBadSamplesError) as error:
        bad_samples.add(BadSample(names[1], None, "empty"), read=10)
    # It has to get through TensorFlow, which takes UTF-8 only.
    assert "/data/\\udcff" in str(error.value).encode("utf-8").decode()
    again = BadSampleLog(str(tmp_path))
    again.add(BadSample(names[0], None, "again"), read=10)
    assert (tmp_path / FILE_NAME).read_bytes().count(b"\n") == 2


def listed_bytes(path) -> dict:
    first = (path / FILE_NAME).read_bytes().split(b"\n")[0]
    return json.loads(first.decode("utf-8", "surrogateescape"))


def test_many_threads(tmp_path):
    FLAGS.set("max_bad_samples", "1000")
    bad_samples = BadSampleLog(str(tmp_path))
    start = threading.Barrier(8)

    def add(first):
        start.wait()
        for number in range(first, first + 40):
            bad_samples.add(bad(number), read=number + 1)
            assert len(bad_samples.samples) > 0

    threads = [threading.Thread(target=add, args=(first * 20,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {sample.file for sample in bad_samples.samples} == {f"/data/{number}.jpg" for number in range(180)}
    assert sorted(entry["file"] for entry in listed(tmp_path)) == sorted(sample.file for sample in bad_samples.samples)


def test_the_bad_sample_log_of_a_run(tmp_path):
    assert current_bad_sample_log() is not current_bad_sample_log()
    with open_bad_sample_log(str(tmp_path)) as bad_samples:
        assert current_bad_sample_log() is bad_samples
    assert current_bad_sample_log() is not bad_samples
