"""`mox.file.File`: modes, methods, and the libraries that are handed one."""

import csv
import io
import itertools
import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moxing as mox

VALID = ["r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "rb+", "wb+", "ab+"]
SPELLINGS = sorted({"".join(letters) for mode in VALID for letters in itertools.permutations(mode)})


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_letter_order_opens_the_same_file(tmp_path, spelling):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with mox.file.File(str(path), spelling) as f:
        assert f.mode in VALID
        assert sorted(f.mode) == sorted(spelling)
        assert f.readable() == ("r" in spelling or "+" in spelling)
        assert f.writable() == ("r" not in spelling or "+" in spelling)
        if f.writable():
            f.write(b"new" if "b" in spelling else "new")
    expected = {"r": b"old", "r+": b"new", "w": b"new", "a": b"oldnew"}
    key = "r+" if "r" in spelling and "+" in spelling else next(c for c in spelling if c in "rwa")
    assert path.read_bytes() == expected[key]


@settings(deadline=None)
@given(mode=st.text(alphabet="rwab+txU ", max_size=4))
def test_a_mode_is_either_known_or_refused(mode):
    letters = sorted(mode.replace("t", "", 1) if "b" not in mode else mode)
    if any(letters == sorted(known) for known in VALID):
        # Only the mode is looked at: a directory can be opened in none.
        with pytest.raises(IsADirectoryError):
            mox.file.File(os.sep, mode)
    else:
        with pytest.raises(ValueError, match=r"mode=.*rb\+") as caught:
            mox.file.File(os.sep, mode)
        assert repr(mode) in str(caught.value)


@pytest.mark.parametrize("mode", ["", "rw", "x", "rr", "rbb", "tt", "rbt", "R", None, 1])
def test_an_unknown_mode_lists_the_known_ones_and_touches_nothing(tmp_path, mode):
    path = tmp_path / "a"
    path.write_text("kept")
    with pytest.raises(ValueError, match="r, w, a, r\\+, w\\+, a\\+, rb"):
        mox.file.File(path, mode)
    assert path.read_text() == "kept"


def test_reading_methods(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one\ntwö\nthree\nfour\n".encode())
    with mox.file.File(str(path), "r") as f:
        assert f.name == str(path)
        assert f.read(2) == "on"
        assert f.readline() == "e\n"
        assert f.readline(2) == "tw"
        assert f.readline(size=-1) == "ö\n"
        assert f.next() == "three\n"
        assert next(f) == "four\n"
        with pytest.raises(StopIteration):
            f.next()
        assert f.read() == ""
        assert f.readline() == ""
        f.seek(0)
        assert f.readlines(sizeint=5) == ["one\n", "twö\n"]
        assert f.readlines() == ["three\n", "four\n"]
        f.seek(0)
        assert f.read(n=3) == "one"
        assert f.tell() == 3
        f.seek(0)
        assert list(f) == ["one\n", "twö\n", "three\n", "four\n"]
        assert f.size() == 20
        assert f.seekable()
        assert not f.isatty()
        assert f.closed is False
    assert f.closed is True
    f.close()
    with pytest.raises(ValueError, match="closed"):
        f.read()
    with pytest.raises(ValueError, match="closed"):
        iter(f)
    with pytest.raises(ValueError, match="closed"):
        f.__enter__()


def test_writing_methods_and_size_with_what_is_not_flushed(tmp_path):
    path = tmp_path / "a.bin"
    with mox.file.File(str(path), "bw+") as f:
        assert f.write(b"0123456789") == 10
        assert f.size() == 10
        f.writelines([b"a", b"b"])
        f.flush()
        assert path.read_bytes() == b"0123456789ab"
        assert f.seek(-2, 2) == 10
        assert f.read() == b"ab"
        assert f.seek(1) == 1
        assert f.seek(2, whence=1) == 3
        assert f.truncate(4) == 4
        assert os.fstat(f.fileno()).st_size == 4


def test_wrong_direction_is_refused_as_by_open(tmp_path):
    with mox.file.File(tmp_path / "a", "w") as f:
        with pytest.raises(io.UnsupportedOperation):
            f.read()
        with pytest.raises(TypeError):
            f.write(b"bytes")


def test_missing_files_and_directories(tmp_path):
    with pytest.raises(mox.file.MoxFileNotExistsException, match="name: no such file") as caught:
        mox.file.File(tmp_path / "none")
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="make_dirs"):
        mox.file.File(tmp_path / "none" / "a.txt", "w")
    with pytest.raises(IsADirectoryError, match="name"):
        mox.file.File(tmp_path, "r")


def test_text_is_utf_8_whatever_the_locale(tmp_path):
    script = (
        "import moxing as mox, sys\n"
        "with mox.file.File(sys.argv[1], 'w') as f: f.write('模型 🚀')\n"
        "with mox.file.File(sys.argv[1]) as f: assert f.read() == '模型 🚀'\n"
        "mox.file.append(sys.argv[1], 'é')\n"
        "assert mox.file.read(sys.argv[1]) == '模型 🚀é'\n"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    subprocess.run([sys.executable, tmp_path / "script.py", tmp_path / "a"], env=environment, check=True)
    assert (tmp_path / "a").read_bytes() == "模型 🚀é".encode()


def test_encoding_errors_and_newline_are_those_of_open(tmp_path):
    path = tmp_path / "a"
    with mox.file.File(path, "w", encoding="gbk", newline="\r\n") as f:
        f.write("模型\n")
    assert path.read_bytes() == "模型\r\n".encode("gbk")
    with mox.file.File(path, errors="replace") as f:
        assert "\ufffd" in f.read()
    with pytest.raises(ValueError, match="encoding"):
        mox.file.File(path, "rb", encoding="utf-8")


def test_pandas_writes_and_reads(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"col1": [1, 2], "名": ["a,b", "é"]})
    for mode in ("w", "wb"):
        with mox.file.File(str(tmp_path / "b.txt"), mode) as f:
            frame.to_csv(f, index=False)
            assert not f.closed
        with mox.file.File(str(tmp_path / "b.txt"), mode.replace("w", "r")) as f:
            pd.testing.assert_frame_equal(pd.read_csv(f), frame)
    with mox.file.File(str(tmp_path / "c.json"), "w") as f:
        frame.to_json(f)
    with mox.file.File(str(tmp_path / "c.json")) as f:
        pd.testing.assert_frame_equal(pd.read_json(f), frame)


def test_the_manual_writes_a_frame_of_outputs_without_closing_it_itself(tmp_path):
    pd = pytest.importorskip("pandas")
    f = mox.file.File(str(tmp_path / "outputs.txt"), "w")
    pd.DataFrame(np.array([{"prediction": 1}])).to_csv(f)
    f.close()
    assert "prediction" in (tmp_path / "outputs.txt").read_text()


@pytest.mark.parametrize("binary", ["", "b"])
def test_numpy_savetxt_and_loadtxt(tmp_path, binary):
    array = np.arange(6.0).reshape(2, 3)
    with mox.file.File(tmp_path / "a.txt", "w" + binary) as f:
        np.savetxt(f, array)
    with mox.file.File(tmp_path / "a.txt", "r" + binary) as f:
        np.testing.assert_array_equal(np.loadtxt(f), array)


def test_numpy_save_and_load(tmp_path):
    array = np.arange(6).reshape(2, 3)
    with mox.file.File(tmp_path / "a.npy", "wb") as f:
        np.save(f, array)
    with mox.file.File(tmp_path / "a.npy", "rb") as f:
        np.testing.assert_array_equal(np.load(f), array)
    with mox.file.File(tmp_path / "a.npz", "wb") as f:
        np.savez(f, x=array)
    with mox.file.File(tmp_path / "a.npz", "rb") as f, np.load(f) as loaded:
        np.testing.assert_array_equal(loaded["x"], array)


def test_csv_json_gzip_and_text_wrapper(tmp_path):
    import gzip

    with mox.file.File(tmp_path / "a.csv", "w", newline="") as f:
        csv.writer(f).writerows([["a", "b c"], ["1", "二"]])
    with mox.file.File(tmp_path / "a.csv") as f:
        assert list(csv.reader(f)) == [["a", "b c"], ["1", "二"]]
    with mox.file.File(tmp_path / "a.json", "w") as f:
        json.dump({"step": 1}, f)
    with mox.file.File(tmp_path / "a.json") as f:
        assert json.load(f) == {"step": 1}
    with mox.file.File(tmp_path / "a.gz", "wb") as f, gzip.GzipFile(fileobj=f, mode="wb") as packed:
        packed.write(b"x" * 100)
    with mox.file.File(tmp_path / "a.gz", "rb") as f, gzip.GzipFile(fileobj=f) as packed:
        assert packed.read() == b"x" * 100
    with mox.file.File(tmp_path / "a.json", "rb") as f, io.TextIOWrapper(f, "utf-8") as text:
        assert text.read() == '{"step": 1}'


def test_a_stream_of_logging(tmp_path):
    stream = mox.file.File(str(tmp_path / "log.txt"), "w")
    handler = logging.StreamHandler(stream)
    logger = logging.Logger("test")
    logger.addHandler(handler)
    logger.info("hello")
    assert (tmp_path / "log.txt").read_text() == "hello\n"
    stream.close()


def test_it_passes_for_a_file_object(tmp_path):
    with mox.file.File(tmp_path / "a", "w") as f:
        assert isinstance(f, io.IOBase)
        assert f.encoding == "utf-8"
        assert not hasattr(f, "no_such_attribute")
        assert repr(f) == f"File({str(tmp_path / 'a')!r}, 'w')"
        print("printed", file=f)
    assert (tmp_path / "a").read_text() == "printed\n"
