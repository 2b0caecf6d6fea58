"""Each fault with each operation: nothing is lost, nothing is half written, and the exception is the documented one."""

import os
from pathlib import Path

import fault_proxy
import pytest

import moxing as mox
from helpers.matrix import rotated

MEDIUM = os.urandom(1 << 16) * 5


class Case:
    """Some content in the store, written past the proxy, and a local directory."""

    def __init__(self, url, local):
        self.url, self.local = url, local
        mox.file.write(f"{url}/a.txt", "content")
        mox.file.write(f"{url}/medium", MEDIUM, binary=True)
        for name in ("d/1", "d/2", "d/e/3"):
            mox.file.write(f"{url}/{name}", name)
        (local / "src" / "sub").mkdir(parents=True)
        (local / "src" / "x").write_text("x")
        (local / "src" / "sub" / "y").write_bytes(MEDIUM)
        (local / "out").mkdir()
        (local / "out" / "old").write_text("old")

    def snapshot(self):
        names = mox.file.list_directory(self.url, recursive=True)
        files = {name: mox.file.read(f"{self.url}/{name}", binary=True) for name in names if self.is_file(name)}
        local = {str(p.relative_to(self.local)): p.read_bytes() for p in self.local.rglob("*") if p.is_file()}
        return names, files, local

    def is_file(self, name):
        return not mox.file.is_directory(f"{self.url}/{name}")

    # Each operation returns what it found; writing ones return nothing and are compared by the snapshot.

    def read(self):
        return mox.file.read(f"{self.url}/a.txt")

    def file_read(self):
        with mox.file.File(f"{self.url}/medium", "rb") as f:
            head = f.read(10)
            f.seek(200_000)
            return head, f.read(50), f.read()

    def write(self):
        mox.file.write(f"{self.url}/a.txt", "new content")

    def file_write(self):
        with mox.file.File(f"{self.url}/a.txt", "w") as f:
            f.write("new ")
            f.write("content")

    def append(self):
        mox.file.append(f"{self.url}/a.txt", " and more")

    def file_append(self):
        with mox.file.File(f"{self.url}/a.txt", "a") as f:
            f.write(" and more")

    def change(self):
        with mox.file.File(f"{self.url}/a.txt", "r+") as f:
            f.write("CON")

    def append_remote(self):
        mox.file.append_remote(f"{self.url}/d/1", f"{self.url}/a.txt")

    def exists(self):
        return [mox.file.exists(f"{self.url}/{name}") for name in ("a.txt", "d", "none")]

    def is_directory(self):
        return [mox.file.is_directory(f"{self.url}/{name}") for name in ("a.txt", "d", "none")]

    def stat(self):
        return mox.file.stat(f"{self.url}/a.txt").length

    def get_size(self):
        return mox.file.get_size(self.url, recursive=True)

    def list_directory(self):
        return mox.file.list_directory(self.url, recursive=True)

    def glob(self):
        return [name.removeprefix(self.url) for name in mox.file.glob(f"{self.url}/d/*")]

    def scan_dir(self):
        return sorted(entry.name for entry in mox.file.scan_dir(self.url))

    def walk(self):
        def fail(error):
            raise error

        return [(dirs, files) for _, dirs, files in mox.file.walk(self.url, onerror=fail)]

    def make_dirs(self):
        mox.file.make_dirs(f"{self.url}/new/dir")

    def mk_dir(self):
        mox.file.mk_dir(f"{self.url}/new")

    def copy_inside(self):
        mox.file.copy(f"{self.url}/medium", f"{self.url}/copy")

    def copy_up(self):
        mox.file.copy(self.local / "src" / "sub" / "y", f"{self.url}/a.txt")

    def copy_down(self):
        mox.file.copy(f"{self.url}/medium", self.local / "out" / "old")

    def copy_parallel_up(self):
        mox.file.copy_parallel(self.local / "src", f"{self.url}/new", threads=2)

    def copy_parallel_down(self):
        mox.file.copy_parallel(f"{self.url}/d", self.local / "new", threads=2)

    def copy_parallel_inside(self):
        mox.file.copy_parallel(f"{self.url}/d", f"{self.url}/new", threads=2)

    def rename(self):
        mox.file.rename(f"{self.url}/d", f"{self.url}/renamed")

    def rename_down(self):
        mox.file.rename(f"{self.url}/a.txt", self.local / "renamed")

    def remove(self):
        mox.file.remove(f"{self.url}/a.txt")

    def remove_recursive(self):
        mox.file.remove(f"{self.url}/d", recursive=True)


OPERATIONS = [name for name in vars(Case) if not name.startswith("_") and name not in ("snapshot", "is_file")]


@pytest.fixture
def case(proxy, s3_folder, tmp_path):
    case = Case(s3_folder, tmp_path)
    proxy.requests.clear()
    return case


@pytest.fixture(scope="module")
def expected():
    """What each operation gives without faults; found out once."""
    return {}


def run_without_faults(expected, operation, case, folder):
    if operation not in expected:
        folder.mkdir()
        calm = Case(f"{case.url}-calm", folder)
        expected[operation] = (getattr(calm, operation)(), calm.snapshot())
    return expected[operation]


#: Damage that stays is in the tests of single checksums; and no store has checksums for pieces of an object.
PAIRS = rotated(OPERATIONS, fault_proxy.FAULTS, fast=3)
PASSING = [pair for pair in PAIRS if pair.values != ("file_read", "damage")]
STAYING = [pair for pair in PAIRS if not pair.values[1].startswith("damage")]


@pytest.mark.parametrize(("operation", "fault"), PASSING)
def test_a_fault_that_passes_is_not_noticed(case, proxy, expected, tmp_path_factory, operation, fault):
    found, state = run_without_faults(expected, operation, case, tmp_path_factory.mktemp("calm") / "x")
    waits = fault in ("slow", "silent")
    mox.file.set_auth(client_timeout=0.3 if waits else 20, list_max_keys=2)
    proxy.requests.clear()
    # A fault that takes long strikes once, and others twice in a row.
    proxy.fail(fault, 1 if waits else 2)
    assert getattr(case, operation)() == found
    proxy.fail("", 0)
    mox.file.set_auth(client_timeout=20)
    assert case.snapshot() == state
    assert len(proxy.requests) > 1


@pytest.mark.parametrize(("operation", "fault"), STAYING)
def test_a_fault_that_stays_is_the_documented_exception(case, proxy, operation, fault, store):
    before = case.snapshot()
    waits = fault in ("slow", "silent")
    mox.file.set_auth(retry=1, client_timeout=0.15 if waits else 20)
    proxy.fail(fault, float("inf"))
    if fault == "truncate" and operation == "remove":
        proxy.fail(fault, float("inf"), lambda method, target: method != "DELETE")
    with pytest.raises((mox.file.MoxFileRespException, mox.file.MoxFileReadException)) as caught:
        getattr(case, operation)()
    error = caught.value
    assert error.resp is not None
    assert str(error.resp.status) == (fault if fault in fault_proxy.ANSWERS else "0")
    assert error.resp.code
    assert "after 2 attempts" in str(error)
    if fault in fault_proxy.ANSWERS:
        assert (error.resp.request_id, error.resp.requestId) == ("R-1", "R-1")
        # The answer to HEAD has no body, and so no code.
        assert error.resp.errorCode == fault_proxy.ANSWERS[fault][1] or "HEAD" in str(error)
    assert error.filename.startswith("s3://tests/")
    proxy.fail("", 0)
    mox.file.set_auth(client_timeout=20)
    names, files, local = case.snapshot()
    if fault in fault_proxy.ON_THE_WAY_BACK or fault == "silent":
        # The store did what it was asked to, only the answer was lost: old content or new, never a part.
        assert set(files) >= set(before[1]) - {"a.txt", "d/1", "d/2", "d/e/3"}
        assert files.get("a.txt", b"content") in whole_contents()
    else:
        assert (names, files) == before[:2]
    assert local == before[2]
    assert not list(Path(case.local).rglob(".mox-*"))


def whole_contents():
    return (b"content", b"new content", b"content and more", b"CONtent", b"contentd/1", MEDIUM)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_lost_connection_leaves_no_part_at_the_end_of_a_local_file(proxy, s3_folder, tmp_path, is_there):
    mox.file.write(f"{s3_folder}/x", MEDIUM * 10, binary=True)
    if is_there:
        (tmp_path / "local").write_text("old")
    mox.file.set_auth(retry=0)
    # The beginning comes, what follows does not.
    gets = []
    proxy.fail("500", float("inf"), lambda method, target: gets.append(target) or len(gets) > 2)
    with pytest.raises(mox.file.MoxFileReadException):
        mox.file.append_remote(f"{s3_folder}/x", tmp_path / "local")
    assert len(gets) > 2
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({"local": b"old"} if is_there else {})
    proxy.fail("", 0)
    mox.file.append_remote(f"{s3_folder}/x", tmp_path / "local")
    assert (tmp_path / "local").read_bytes() == (b"old" if is_there else b"") + MEDIUM * 10
