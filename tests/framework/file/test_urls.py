"""How URLs are resolved."""

import os
import pathlib
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moxing as mox
from moxing.framework.file import file_io
from moxing.framework.file.urls import get_scheme

SCHEME_LETTERS = "abcXYZ019+-."
LOCAL = "/no/such/local/path"
CALLS = {
    "File name": lambda url: mox.file.File(url, "r"),
    "append url": lambda url: mox.file.append(url, "x"),
    "append_remote src_url": lambda url: mox.file.append_remote(url, LOCAL),
    "append_remote dst_url": lambda url: mox.file.append_remote(LOCAL, url),
    "copy src_url": lambda url: mox.file.copy(url, LOCAL),
    "copy dst_url": lambda url: mox.file.copy(LOCAL, url),
    "copy_parallel src_url": lambda url: mox.file.copy_parallel(url, LOCAL),
    "copy_parallel dst_url": lambda url: mox.file.copy_parallel(LOCAL, url),
    "copy_parallel file_list": lambda url: mox.file.copy_parallel(LOCAL, LOCAL, file_list=[url]),
    "exists url": lambda url: mox.file.exists(url),
    "get_size url": lambda url: mox.file.get_size(url),
    "glob url": lambda url: mox.file.glob(url),
    "is_directory url": lambda url: mox.file.is_directory(url),
    "list_directory url": lambda url: mox.file.list_directory(url),
    "make_dirs url": lambda url: mox.file.make_dirs(url),
    "mk_dir url": lambda url: mox.file.mk_dir(url),
    "read url": lambda url: mox.file.read(url),
    "remove url": lambda url: mox.file.remove(url, recursive=True),
    "rename src_url": lambda url: mox.file.rename(url, LOCAL),
    "rename dst_url": lambda url: mox.file.rename(LOCAL, url),
    "scan_dir url": lambda url: mox.file.scan_dir(url),
    "stat url": lambda url: mox.file.stat(url),
    "walk url": lambda url: mox.file.walk(url),
    "write url": lambda url: mox.file.write(url, "x"),
}


def test_the_calls_above_are_all_functions():
    others = {"set_auth", "shift", *(name for name in mox.file.__all__ if name.endswith(("Exception", "Error")))}
    assert {call.split()[0] for call in CALLS} | others == set(mox.file.__all__)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("url", "advice"), [("nosuch://host/a", "does not know the scheme"), ("gs://a/b", "gcsfs")])
def test_urls_without_a_backend(tmp_path, monkeypatch, call, url, advice):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mox.file.UnsupportedSchemeError) as caught:
        CALLS[call](url)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert f"{call.split()[1]}={url!r}" in message
    if "file_list" not in call:
        assert advice in message
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("scheme", ["gs", "hdfs", "nosuch"])
def test_without_fsspec_the_message_says_so(monkeypatch, scheme):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(mox.file.UnsupportedSchemeError, match="pip install fsspec") as caught:
        mox.file.exists(f"{scheme}://a/b")
    assert {"gs": "gcsfs", "hdfs": "pyarrow", "nosuch": ""}[scheme] in str(caught.value)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("url", ["s3:/bucket/a", pathlib.PurePosixPath("s3://bucket/a")])
def test_a_url_that_lost_a_slash(tmp_path, monkeypatch, call, url):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mox.file.UnsupportedSchemeError, match="two slashes"):
        CALLS[call](url)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("url", ["s3//bucket/a", "obs//bucket/a"])
def test_a_url_without_its_colon_is_no_local_path(url):
    with pytest.raises(ValueError, match=f"expected {url.replace('//', '://')}, or ./{url} for a local path"):
        mox.file.write(url, "x")


@pytest.mark.parametrize("call", [call for call in CALLS if "file_list" not in call])
@pytest.mark.parametrize("url", ["s3://", "obs:///a", "s3://-x/a", "s3://a?b/c", "s3://user@host/a", "s3://a:80/b"])
def test_urls_without_a_bucket(call, url):
    with pytest.raises(ValueError, match=f"{call.split()[1]}=.*expected {url[: url.index(':')]}://bucket"):
        CALLS[call](url)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wrong", [None, 3, ["a"]])
def test_what_is_no_path(call, wrong):
    with pytest.raises(TypeError, match=f"{call.split()[1]}="):
        CALLS[call](wrong)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("exists url", "is_directory url")])
@pytest.mark.parametrize("wrong", ["", "a\0b", "s3://bucket/a\0b"])
def test_what_no_path_can_be(call, wrong):
    with pytest.raises(ValueError, match=f"{call.split()[1]}="):
        CALLS[call](wrong)


def test_file_urls_and_every_kind_of_path(tmp_path):
    for number, form in enumerate([str, os.fsencode, pathlib.Path, "file://{}".format, "FILE://localhost{}".format]):
        folder = form(tmp_path)
        mox.file.make_dirs(folder)
        path = form(tmp_path / f"a b%41 {number}.txt")
        mox.file.write(path, "x")
        with mox.file.File(path) as f:
            assert f.read() == "x"
            assert f.name == os.fsdecode(path)
        assert mox.file.exists(path)
        assert f"a b%41 {number}.txt" in mox.file.list_directory(folder)
    assert len(os.listdir(tmp_path)) == 5


@pytest.mark.parametrize("url", ["file://relative/a", "file://", "file://host"])
def test_file_urls_are_absolute(url):
    with pytest.raises(mox.file.UnsupportedSchemeError, match="file:///path"):
        mox.file.exists(url)


@settings(deadline=None)
@given(
    scheme=st.text(SCHEME_LETTERS, min_size=1, max_size=8).filter(lambda s: s[0].isalpha()), rest=st.text(max_size=9)
)
def test_schemes_are_found(scheme, rest):
    assert get_scheme(f"{scheme}://{rest}") == scheme.lower()


@pytest.mark.parametrize("path", ["a:/b", "/a://b", "a/b://c", "://a", "1a://b", "ä://b", "a b://c", "c:\\d"])
def test_paths_without_a_scheme(path):
    assert get_scheme(path) is None


def test_file_io_is_the_same():
    assert file_io.__all__ == mox.file.__all__
    for name in mox.file.__all__:
        assert getattr(file_io, name) is getattr(mox.file, name)


def test_import_is_light():
    script = (
        "import sys, moxing\n"
        "heavy = {'tensorflow', 'numpy', 'multiprocessing', 'concurrent.futures', 'shutil', 'glob', 'logging'}\n"
        "heavy |= {'urllib3', 'urllib.parse', 'fsspec', 'threading', 'tempfile', 'hashlib'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    # -S: packages of the environment may import things when Python starts.
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
