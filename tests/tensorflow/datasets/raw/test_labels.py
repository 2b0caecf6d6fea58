"""labels.txt: what is read, what is refused, and what is written."""

import codecs
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moxing.tensorflow.datasets.raw.labels import (
    decode_text,
    format_labels,
    read_label_map,
    read_labels,
    split_lines,
    write_labels,
)


def read(tmp_path, content):
    path = tmp_path / "labels.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_labels(str(path))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("0: a\n1: b\n", ["a", "b"]),
        ("0:a\n1:b", ["a", "b"]),
        ("1:b\n0:a", ["a", "b"]),
        ("\n  0 :  a  \n\n\t1:b\t\n\n", ["a", "b"]),
        (codecs.BOM_UTF8 + b"0: a\r\n1: b\r\n", ["a", "b"]),
        ("0: a\r1: b\r", ["a", "b"]),
        ("0: a\n1: b\n".encode("utf-16"), ["a", "b"]),
        (
            "0: red rose\n1: ratio 3:2\n2: 向日葵\n3: 🌻🚀\n4: a\u2028b",
            ["red rose", "ratio 3:2", "向日葵", "🌻🚀", "a\u2028b"],
        ),
        ("00: a\n01: b", ["a", "b"]),
        (b"0: caf\xe9", ["caf\udce9"]),
        ("roses\r\ntulips, red\n\ncat: black\n", ["roses", "tulips, red", "cat: black"]),
        ("007\n008", ["007", "008"]),
    ],
)
def test_what_is_read(tmp_path, content, names):
    assert read(tmp_path, content) == names


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (codecs.BOM_UTF8 + b"\r\n  \n", "is empty"),
        ("0: a\nb\n", r"line 2: 'b' has no index"),
        ("0: a\n\n-1: b\n", r"line 3: '-1: b' has no index"),
        ("0: a\n1:\n", r"line 2: '1:' has no name"),
        ("0: a\n1: b\n\n0: c", r"line 4: the index 0 is in line 1 already"),
        ("0: a\n1: b\n2: a", r"line 3: the name 'a' is in line 1 already"),
        ("a\nb\na", r"line 3: the name 'a' is in line 1 already"),
        ("0: a\n3: b\n4: c", r"line 2: index 3, but 3 labels have the indices 0 to 2; missing: 1, 2\."),
        ("1: a\n2: b", r"line 2: index 2, but 2 labels have the indices 0 to 1; missing: 0\."),
        ("\n".join(f"{i}: {i}" for i in range(100, 120)), r"missing: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.\."),
    ],
)
def test_what_is_refused_names_file_and_line(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, content)
    assert "labels.txt'" in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        read_labels(tmp_path / "none.txt")


def test_a_map_may_have_gaps_and_equal_names(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("517:crane\n134:crane\n")
    assert list(read_label_map(path).items()) == [(134, "crane"), (517, "crane")]
    path.write_text("7:a\n7:b\n")
    with pytest.raises(ValueError, match="line 2: the index 7"):
        read_label_map(path)
    path.write_text("b\na\n")
    assert read_label_map(path) == {0: "b", 1: "a"}


def test_written_in_the_form_of_the_manual_and_of_slim(tmp_path):
    write_labels(tmp_path / "labels.txt", ["b", "a: c"])
    assert (tmp_path / "labels.txt").read_text() == "0: b\n1: a: c\n"
    write_labels(str(tmp_path / "labels.txt"), {1: "b", 0: "a"}, separator=":")
    assert (tmp_path / "labels.txt").read_text() == "0:a\n1:b\n"
    assert os.listdir(tmp_path) == ["labels.txt"]


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "a\rb", "\u3000a"])
def test_names_that_could_not_be_read_back(tmp_path, name):
    (tmp_path / "labels.txt").write_text("0: old\n")
    with pytest.raises(ValueError, match=r"names\[1\]=.* does not fit into a labels file"):
        write_labels(tmp_path / "labels.txt", ["ok", name])
    assert (tmp_path / "labels.txt").read_text() == "0: old\n"


def test_bad_indices_and_types():
    for index in (-1, True, "0"):
        with pytest.raises(ValueError, match="expected integers from 0"):
            format_labels({index: "a"})
    with pytest.raises(TypeError, match=r"names\[0\]=5: expected a str"):
        format_labels([5])


@given(st.lists(st.text(min_size=1).filter(lambda n: n == n.strip() and "\n" not in n and "\r" not in n), unique=True))
def test_what_is_written_is_read_back(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("labels") / "labels.txt"
    try:
        write_labels(path, names)
    except UnicodeEncodeError:  # half of a character: no file name has it
        return
    if names:
        assert read_labels(path) == names


def test_undecodable_bytes_come_back(tmp_path):
    name = os.fsdecode(b"caf\xe9 \xff")
    write_labels(tmp_path / "labels.txt", [name])
    assert (tmp_path / "labels.txt").read_bytes() == b"0: caf\xe9 \xff\n"
    assert read_labels(tmp_path / "labels.txt") == [name]


def test_text_and_lines():
    assert decode_text("猫".encode("utf-16-be").join([codecs.BOM_UTF16_BE, b""])) == "猫"
    assert split_lines("a\x0bb\x85c\nd") == ["a\x0bb\x85c", "d"]
