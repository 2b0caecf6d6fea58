"""Large files, many files, cut-off copies and unusual ways of writing, on a real store."""

import contextlib
import os
import pty
import resource
import signal
import stat
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import wait
from pathlib import Path

import fault_proxy
import pytest

import moxing as mox
from moxing.framework.file import downloads, file_io, running, s3_client, s3_multipart
from moxing.framework.file.auth import get_client
from moxing.framework.file.s3_multipart import MultipartUpload, combined_etag
from moxing.framework.file.s3_xml import Part

MB = 1 << 20
LARGE = b"".join(os.urandom(4096) * 256 for _ in range(21)) + b"end"


def uploads(s3_folder):
    """The uploads in parts that are under way below a folder."""
    prefix = s3_folder.removeprefix("s3://tests/")
    answer = get_client("s3").send("GET", "tests", query={"uploads": "", "prefix": prefix})
    return bytes(answer.body).count(b"<Upload>")


@pytest.fixture
def large(s3_folder):
    mox.file.write(f"{s3_folder}/large", LARGE, binary=True)
    return f"{s3_folder}/large"


def test_a_large_object_in_every_way(large, s3_folder, tmp_path):
    assert mox.file.get_size(large) == len(LARGE)
    assert mox.file.read(large, binary=True) == LARGE
    mox.file.copy(large, tmp_path / "large")
    assert (tmp_path / "large").read_bytes() == LARGE
    assert os.listdir(tmp_path) == ["large"]
    mox.file.copy(tmp_path / "large", f"{s3_folder}/up")
    mox.file.copy(f"{s3_folder}/up", f"{s3_folder}/copy")
    assert mox.file.read(f"{s3_folder}/copy", binary=True) == LARGE
    mox.file.copy_parallel(s3_folder, tmp_path / "all", threads=2)
    assert (tmp_path / "all" / "copy").read_bytes() == LARGE
    with mox.file.File(large, "rb") as f:
        assert f.read() == LARGE
    with mox.file.File(f"{s3_folder}/obs-name".replace("s3://", "obs://"), "wb") as f:
        f.write(LARGE)
    assert mox.file.read(f"{s3_folder}/obs-name", binary=True) == LARGE
    mox.file.append(f"{s3_folder}/up", b"more", binary=True)
    assert mox.file.read(f"{s3_folder}/up", binary=True) == LARGE + b"more"
    assert uploads(s3_folder) == 0


def test_copies_in_parts_inside_the_store(large, s3_folder, monkeypatch):
    monkeypatch.setattr(s3_client, "LARGEST_COPY", 6 * MB)
    monkeypatch.setattr("moxing.framework.file.s3_multipart._COPY_PART_SIZE", 6 * MB)
    mox.file.copy(large, f"{s3_folder}/parts")
    assert mox.file.read(f"{s3_folder}/parts", binary=True) == LARGE
    assert get_client("s3").head("tests", f"{s3_folder}/parts".removeprefix("s3://tests/")).etag.endswith('-4"')


def test_a_copy_in_parts_is_like_one_in_a_single_request(s3_folder, monkeypatch):
    client, prefix = get_client("s3"), s3_folder.removeprefix("s3://tests/")
    given = {"content-type": "text/x-own", "cache-control": "no-store", "x-amz-meta-note": "two  words"}
    client.send("PUT", "tests", f"{prefix}/a", headers=given, body=bytes(6 * MB))
    mox.file.copy(f"{s3_folder}/a", f"{s3_folder}/single")
    # What a slow store copies within the usual time limit of a request.
    assert s3_client.LARGEST_COPY <= 256 * MB
    assert s3_multipart._COPY_PART_SIZE <= 256 * MB
    monkeypatch.setattr(s3_client, "LARGEST_COPY", 5 * MB)
    monkeypatch.setattr(s3_multipart, "_COPY_PART_SIZE", 5 * MB)
    mox.file.copy(f"{s3_folder}/a", f"{s3_folder}/parts")
    for name in ("single", "parts"):
        found = client.send("HEAD", "tests", f"{prefix}/{name}").headers
        assert {key: " ".join(found[key].split()) for key in given} == {**given, "x-amz-meta-note": "two words"}
        assert ("-2" in found["etag"]) == (name == "parts")


def test_partial_reads_fetch_ranges(proxy, large):
    proxy.sent = 0
    with mox.file.File(large, "rb") as f:
        f.seek(15 * MB)
        assert f.read(100) == LARGE[15 * MB : 15 * MB + 100]
        f.seek(-3, 2)
        assert f.read() == b"end"
    assert proxy.sent < MB
    proxy.requests.clear()
    with mox.file.File(large, "rb") as f:
        while f.read(10_000):
            pass
    # From front to back the ranges grow: far fewer requests than pieces.
    assert len(proxy.requests) < 15


def test_an_object_that_is_replaced_while_it_is_read(large):
    with mox.file.File(large, "rb") as f:
        f.read(10)
        mox.file.write(large, "other")
        with pytest.raises(mox.file.MoxFileReadException, match="changed while it was read"):
            f.read()


def test_what_is_written_appears_on_close(s3_folder):
    url = f"{s3_folder}/file"
    mox.file.write(url, "old")
    f = mox.file.File(url, "wb")
    f.write(LARGE)
    f.flush()
    assert uploads(s3_folder) == 1
    assert mox.file.read(url) == "old"
    f.close()
    assert mox.file.read(url, binary=True) == LARGE
    with pytest.raises(KeyError), mox.file.File(url, "wb") as f:
        f.write(LARGE)
        raise KeyError("in the block")
    assert mox.file.read(url, binary=True) == LARGE
    with pytest.raises(KeyError), mox.file.File(url, "ab") as f:
        f.write(b"more")
        raise KeyError("in the block")
    assert mox.file.read(url, binary=True) == LARGE
    assert uploads(s3_folder) == 0


@contextlib.contextmanager
def full_disk(size):
    """No file of this process gets larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("mode", ["wb", "ab", "rb+"])
@pytest.mark.parametrize("change", ["write", "truncate"])
def test_a_write_that_fails_changes_nothing(s3_folder, mode, change):
    """Python closes a file whose last write has failed all the same."""
    url = f"{s3_folder}/file"
    mox.file.write(url, "old")
    f = mox.file.File(url, mode)
    with full_disk(100_000):
        f.write(b"some")
        with pytest.raises(OSError, match="File too large"):
            if change == "truncate":
                f.truncate(200_000)
            f.write(bytes(200_000))
            f.close()
        f.close()
    assert mox.file.read(url) == "old"


def test_a_writer_that_goes_back(s3_folder, tmp_path):
    """A zip archive goes back to the header of an entry when it knows its size."""
    url = f"{s3_folder}/archive.zip"
    with mox.file.File(url, "wb") as f, zipfile.ZipFile(f, "w") as archive:
        with archive.open("large", "w") as entry:
            entry.write(LARGE)
        archive.writestr("small", "s")
    with mox.file.File(url, "rb") as f, zipfile.ZipFile(f) as archive:
        assert archive.read("large") == LARGE
        assert archive.testzip() is None
    with mox.file.File(f"{s3_folder}/shorter", "wb") as f:
        f.write(LARGE)
        f.truncate(5)
    assert mox.file.read(f"{s3_folder}/shorter", binary=True) == LARGE[:5]


def test_a_script_that_never_closes_its_files(s3_folder):
    code = (
        "import moxing as mox\n"
        f"f = mox.file.File({s3_folder + '/small'!r}, 'w'); f.write('left open')\n"
        f"g = mox.file.File({s3_folder + '/large'!r}, 'wb'); g.write(b'x' * (9 << 20)); g.write(b'y' * (9 << 20))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert mox.file.read(f"{s3_folder}/small") == "left open"
    assert mox.file.get_size(f"{s3_folder}/large") == 18 * MB


def parts(method, target):
    return method == "PUT" and "partNumber=3" in target


def test_a_failed_part_leaves_nothing(proxy, s3_folder, tmp_path):
    (tmp_path / "large").write_bytes(LARGE)
    mox.file.set_auth(retry=1)
    for write in (
        lambda: mox.file.copy(tmp_path / "large", f"{s3_folder}/x"),
        lambda: mox.file.write(f"{s3_folder}/x", LARGE, binary=True),
        lambda: mox.file.copy_parallel(tmp_path, f"{s3_folder}/d"),
    ):
        proxy.fail("500", float("inf"), parts)
        with pytest.raises(mox.file.MoxFileRespException):
            write()
    with pytest.raises(mox.file.MoxFileRespException), mox.file.File(f"{s3_folder}/x", "wb") as f:
        f.write(LARGE)
    assert mox.file.list_directory("s3://tests", recursive=True, skip_dir=True).count("x") == 0
    assert not mox.file.exists(s3_folder)
    assert uploads(s3_folder) == 0


@pytest.mark.parametrize("fault", fault_proxy.FAULTS)
@pytest.mark.parametrize("step", ["uploads=", "partNumber=2", "uploadId="])
def test_faults_during_an_upload_in_parts(proxy, s3_folder, tmp_path, fault, step):
    (tmp_path / "large").write_bytes(LARGE)
    mox.file.set_auth(client_timeout=0.7 if fault in ("slow", "silent") else 20)
    proxy.fail(fault, 1, lambda method, target: step in target and (step != "uploadId=" or method == "POST"))
    mox.file.copy(tmp_path / "large", f"{s3_folder}/x")
    assert proxy.unused == 0
    mox.file.set_auth(client_timeout=20)
    assert mox.file.read(f"{s3_folder}/x", binary=True) == LARGE


def completes(method, target):
    return method == "POST" and "uploadId=" in target


@pytest.mark.parametrize("fault", ["", "reset", "not_found"])
def test_an_upload_that_is_gone_is_not_taken_for_done(proxy, large, fault):
    """Not even if an object with as many parts is there: it is the old one."""
    client, key = get_client("s3"), large.removeprefix("s3://tests/")
    upload = MultipartUpload(client, "tests", key)
    for _ in range(3):
        upload.write_part_from(lambda: b"new")
    wait(upload._parts)
    assert client.head("tests", key).etag.endswith('-3"')
    client.send("DELETE", "tests", key, query={"uploadId": upload._id})
    proxy.fail(fault, 1, completes)
    with pytest.raises(mox.file.MoxFileRespException, match="the parts were not put together") as caught:
        upload.complete()
    assert caught.value.resp.status == 404
    assert caught.value.resp.code == ("NotFound" if fault == "not_found" else "NoSuchUpload")
    proxy.fail("", 0)
    assert mox.file.read(large, binary=True) == LARGE


def test_what_the_etag_of_parts_is(s3_folder):
    """It tells after a lost answer whether the object is there."""
    client, key = get_client("s3"), f"{s3_folder}/a".removeprefix("s3://tests/")
    upload = MultipartUpload(client, "tests", key)
    upload.send_all([lambda: bytes(5 * MB), lambda: b"end"])
    assert client.head("tests", key).etag == f'"{combined_etag([part.result() for part in upload._parts])}"'
    assert combined_etag([Part('"opaque"')]) is None


def test_an_answer_that_only_begins_well(proxy, s3_folder):
    """A store may answer 200 at once and tell of a failure in the body."""
    error = fault_proxy.ERROR.format("InternalError").encode()
    broken = []

    def fail(target, body):
        if "uploadId=" not in target or "partNumber=" in target or len(broken) == times:
            return body
        broken.append(target)
        return error

    proxy.rewrite, times = fail, 1
    mox.file.write(f"{s3_folder}/a", LARGE, binary=True)
    assert len(broken) == 1
    assert mox.file.read(f"{s3_folder}/a", binary=True) == LARGE
    times = 100
    mox.file.set_auth(retry=0)
    with pytest.raises(mox.file.MoxFileRespException) as caught:
        mox.file.write(f"{s3_folder}/b", LARGE, binary=True)
    assert (caught.value.resp.status, caught.value.resp.code) == (200, "InternalError")


@pytest.mark.parametrize("fault", [fault for fault in fault_proxy.FAULTS if fault != "damage"])
def test_faults_during_a_download_in_parts(proxy, large, tmp_path, fault):
    mox.file.set_auth(client_timeout=0.7 if fault in ("slow", "silent") else 20)
    proxy.fail(fault, 2, lambda method, target: method == "GET")
    mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE


def test_a_truncated_body_is_continued_where_it_ended(proxy, large):
    proxy.requests.clear()
    proxy.sent = 0
    proxy.fail("truncate", 1)
    assert mox.file.read(large, binary=True) == LARGE
    assert len(proxy.requests) == 2
    assert proxy.sent < 1.6 * len(LARGE)


def test_a_cut_off_download_is_continued(proxy, large, tmp_path):
    (tmp_path / "large").write_text("old")
    mox.file.set_auth(retry=0)
    seen = []

    def is_later_part(method, target):
        seen.extend([target] * (method == "GET" and target.endswith("/large")))
        return len(seen) > 2

    proxy.fail("reset", float("inf"), is_later_part)
    with pytest.raises(mox.file.MoxFileReadException):
        mox.file.copy_parallel(os.path.dirname(large), tmp_path, threads=1)
    assert (tmp_path / "large").read_text() == "old"
    (part,) = tmp_path.glob(".mox-*.part")
    proxy.fail("", 0)
    proxy.sent = 0
    mox.file.copy_parallel(os.path.dirname(large), tmp_path)
    assert (tmp_path / "large").read_bytes() == LARGE
    assert proxy.sent < 6 * MB
    assert os.listdir(tmp_path) == ["large"]
    assert not part.exists()


def test_a_cut_off_download_of_another_version_is_not_continued(large, tmp_path):
    client = get_client("s3")
    key = large.removeprefix("s3://tests/")
    info = client.head("tests", key)
    with (
        pytest.raises(KeyError),
        downloads._open_part_file(str(tmp_path / "x"), client.url("tests", key), info) as part,
    ):
        part.put(0, bytearray(8 * MB))
        raise KeyError("cut off")
    assert len(os.listdir(tmp_path)) == 1
    mox.file.write(large, LARGE[::-1], binary=True)
    mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE[::-1]
    assert os.listdir(tmp_path) == ["x"]


def test_a_device_is_written_to_and_not_replaced(large, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    mox.file.copy(large, pipe)
    # A file in place of the pipe would leave the reader waiting for ever.
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(10)
    assert got == [LARGE]
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_pipe_does_not_block_an_upload(s3_folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_text("a")
    # Whoever waits for the other end of the pipe gets one.
    ends = []
    rescue = threading.Timer(5, lambda: ends.append(os.open(tmp_path / "pipe", os.O_RDWR)))
    rescue.start()
    try:
        with pytest.raises(OSError, match="src_url is not a regular file"):
            mox.file.copy_parallel(tmp_path, f"{s3_folder}/all")
        with pytest.raises(OSError, match="src_url is not a regular file"):
            mox.file.copy(tmp_path / "pipe", f"{s3_folder}/one")
        assert not ends
    finally:
        rescue.cancel()
        for end in ends:
            os.close(end)
    assert not mox.file.exists(f"{s3_folder}/all/pipe")
    assert not mox.file.exists(f"{s3_folder}/one")


def test_a_large_object_does_not_replace_a_read_only_file(large, tmp_path, monkeypatch):
    (tmp_path / "x").write_text("old")
    # Root may write everything, so the answer is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="dst_url: the file is read-only"):
        mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_two_downloads_to_one_name(large, tmp_path):
    """The first to be done clears away what earlier attempts left, but not what the other one is writing."""
    client = get_client("s3")
    key = large.removeprefix("s3://tests/")
    arguments = str(tmp_path / "x"), client.url("tests", key), client.head("tests", key)
    with contextlib.ExitStack() as second:
        with downloads._open_part_file(*arguments) as first:
            other = second.enter_context(downloads._open_part_file(*arguments))
            first.finish(str(tmp_path / "x"))
        assert os.path.exists(other.path)
        other.finish(str(tmp_path / "x"))
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("names", [["d/large", "d/large"], ["d", "d/large"], ["d/large", "."]])
def test_a_file_that_is_named_twice_is_copied_once(proxy, large, s3_folder, tmp_path, names):
    mox.file.rename(large, f"{s3_folder}/d/large")
    proxy.sent = 0
    mox.file.copy_parallel(s3_folder, tmp_path / "down", file_list=names)
    assert proxy.sent < 1.5 * len(LARGE)
    assert (tmp_path / "down" / "d" / "large").read_bytes() == LARGE
    proxy.requests.clear()
    mox.file.copy_parallel(tmp_path / "down", f"{s3_folder}/up", file_list=names)
    assert sum(method == "POST" and "uploads=" in target for method, target in proxy.requests) == 1
    assert mox.file.read(f"{s3_folder}/up/d/large", binary=True) == LARGE


def test_a_damaged_large_object_is_noticed(proxy, s3_folder, tmp_path, monkeypatch):
    """One that was uploaded in one request has its MD5 as ETag."""
    client = get_client("s3")
    client.put("tests", f"{s3_folder}/one".removeprefix("s3://tests/"), LARGE)
    proxy.fail("damage", float("inf"))
    with pytest.raises(mox.file.MoxFileReadException, match="MD5"):
        mox.file.copy(f"{s3_folder}/one", tmp_path / "x")
    assert os.listdir(tmp_path) == []
    mox.file.set_auth(retry=1)
    with pytest.raises(mox.file.MoxFileReadException, match="MD5"):
        mox.file.read(f"{s3_folder}/one", binary=True)


def test_a_killed_copy_leaves_no_half_file(proxy, large, tmp_path):
    code = f"import moxing as mox; mox.file.set_auth(server={proxy.endpoint!r}); mox.file.copy({large!r}, 'x')"
    proxy.fail("silent", float("inf"), lambda method, target: method == "GET" and len(proxy.requests) > 2)
    proxy.requests.clear()
    child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    while not list(tmp_path.glob(".mox-*.part")) or len(proxy.requests) < 3:
        assert child.poll() is None
    child.kill()
    child.wait()
    assert not (tmp_path / "x").exists()
    proxy.fail("", 0)
    mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("use_queue", [True, False])
def test_processes(s3_folder, tmp_path, monkeypatch, own_settings, store, use_queue):
    """What set_auth was told reaches the processes, and not by their environment or command line."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "S3_ENDPOINT"):
        monkeypatch.delenv(name)
    keys = store.environment
    mox.file.set_auth(keys["ACCESS_KEY_ID"], keys["SECRET_ACCESS_KEY"], keys["S3_ENDPOINT"])
    monkeypatch.setattr(running, "_FILES_PER_PROCESS", 20)
    monkeypatch.setattr(running, "_BATCH", 5)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    started = []
    original = subprocess.Popen.__init__

    def spy(self, arguments, **options):
        started.append(arguments)
        original(self, arguments, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", spy)
    # Scripts put such things there; Python itself ignores them.
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    names = [f"{n // 10}/{n}.txt" for n in range(100)]
    for name in names:
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    mox.file.copy_parallel(tmp_path / "src", s3_folder, use_queue=use_queue)
    assert len(started) == 2
    mox.file.copy_parallel(s3_folder, tmp_path / "dst", use_queue=use_queue)
    assert len(started) == 4
    assert {name: (tmp_path / "dst" / name).read_text() for name in names} == {name: name for name in names}
    assert not any(keys["SECRET_ACCESS_KEY"] in text for arguments in started for text in arguments)
    mox.file.copy_parallel(s3_folder, tmp_path / "again", is_processing=False)
    monkeypatch.setattr(file_io, "_NUMBER_OF_PROCESSES", 1)
    mox.file.copy_parallel(s3_folder, tmp_path / "again")
    assert len(started) == 4


@pytest.mark.parametrize("copy", [mox.file.copy, mox.file.copy_parallel])
def test_one_part_after_the_other_where_a_script_wants_that(proxy, s3_folder, tmp_path, monkeypatch, copy):
    size = 4 << 23
    (tmp_path / "large").write_bytes(os.urandom(size))
    monkeypatch.setattr(file_io, "_LARGE_FILE_METHOD", 2)
    copy(tmp_path / "large", s3_folder + "/large")
    copy(s3_folder + "/large", tmp_path / "copy")
    assert proxy.connections == 1
    monkeypatch.setattr(file_io, "_LARGE_FILE_METHOD", 1)
    monkeypatch.setattr(file_io, "_LARGE_FILE_TASK_NUM", 2)
    copy(tmp_path / "large", s3_folder + "/large")
    copy(s3_folder + "/large", tmp_path / "copy")
    assert proxy.connections == 2
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "large").read_bytes()


def test_an_error_in_a_process_is_raised_here(proxy, s3_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_FILES_PER_PROCESS", 20)
    monkeypatch.setattr(running, "_BATCH", 5)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for n in range(60):
        (tmp_path / f"{n}").write_text("x")
    mox.file.set_auth(retry=0)
    proxy.fail("503", float("inf"), lambda method, target: method == "PUT")
    with pytest.raises(mox.file.MoxFileRespException) as caught:
        mox.file.copy_parallel(tmp_path, s3_folder)
    assert (caught.value.resp.status, caught.value.resp.code) == (503, "SlowDown")


def test_an_interrupt_while_the_processes_are_waited_for(proxy, s3_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_FILES_PER_PROCESS", 2)
    monkeypatch.setattr(running, "_BATCH", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for name in ("own-1", "own-2", "theirs-1", "theirs-2"):
        (tmp_path / name).write_text("x")
    processes = []
    original_start, original_join = subprocess.Popen.__init__, threading.Thread.join

    def spy(self, *args, **options):
        processes.append(self)
        original_start(self, *args, **options)

    interrupts = ["one"]

    def interrupt(self, timeout=None):
        if self.name == "mox-feed" and interrupts:
            interrupts.clear()
            raise KeyboardInterrupt
        original_join(self, timeout)

    monkeypatch.setattr(subprocess.Popen, "__init__", spy)
    monkeypatch.setattr(threading.Thread, "join", interrupt)
    proxy.fail("silent", float("inf"), lambda method, target: method == "PUT" and "theirs" in target)
    with pytest.raises(KeyboardInterrupt):
        mox.file.copy_parallel(tmp_path, s3_folder, file_list=sorted(os.listdir(tmp_path)), use_queue=False)
    assert [process.returncode for process in processes] == [-signal.SIGKILL]
    assert mox.file.list_directory(s3_folder) == ["own-1", "own-2"]


def test_between_two_kinds_of_stores(s3_folder, tmp_path):
    memory = f"memory://{os.urandom(8).hex()}"
    mox.file.write(f"{s3_folder}/a/x", "x")
    mox.file.copy_parallel(s3_folder, memory)
    mox.file.rename(f"{memory}/a", f"{s3_folder}/b")
    assert mox.file.list_directory(s3_folder, recursive=True) == ["a", "a/x", "b", "b/x"]
    mox.file.rename(f"{s3_folder}/b", tmp_path / "c")
    assert (tmp_path / "c" / "x").read_text() == "x"
    assert not mox.file.exists(f"{s3_folder}/b")
    mox.file.rename(tmp_path / "c" / "x", f"{s3_folder}/d")
    assert mox.file.read(f"{s3_folder}/d") == "x"
    assert not Path(tmp_path / "c" / "x").exists()


def test_copy_parallel_of_a_single_file_is_copy(s3_folder, tmp_path):
    (tmp_path / "a").write_text("a")
    mox.file.copy_parallel(tmp_path / "a", f"{s3_folder}/one")
    mox.file.copy_parallel(f"{s3_folder}/one", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "a"
    for source in (tmp_path / "none", f"{s3_folder}/none"):
        with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
            mox.file.copy_parallel(source, f"{s3_folder}/two")
    with pytest.raises(ValueError, match="file_list"):
        mox.file.copy_parallel(tmp_path / "a", f"{s3_folder}/two", file_list=["x"])


def test_a_full_disk_is_no_failure_of_the_connection(large, tmp_path, monkeypatch):
    """It is told at once, not repeated as a request that failed."""
    calls = []

    def full(descriptor, content, offset):
        calls.append(offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(downloads.os, "pwrite", full)
    with pytest.raises(OSError, match="No space left") as caught:
        mox.file.copy_parallel(os.path.dirname(large), tmp_path, threads=1)
    assert caught.value.errno == 28
    assert len(calls) == len(set(calls))
    with pytest.raises(OSError, match="No space left"):
        mox.file.copy(large, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_two_schemes_for_one_store(proxy, s3_folder):
    """`s3://b/a` and `obs://b/a` may be one object: copied onto itself and then removed, it would be lost."""
    other = s3_folder.replace("s3://", "OBS://")
    mox.file.write(f"{s3_folder}/d/a", "kept")
    mox.file.rename(f"{s3_folder}/d/a", f"{other}/d/a")
    mox.file.rename(f"{s3_folder}/d", f"{other}/d/")
    mox.file.copy(f"{s3_folder}/d/a", f"{other}/d/a")
    assert mox.file.read(f"{other}/d/a") == "kept"
    for target in (f"{other}/d", f"{other}/d/inner"):
        with pytest.raises(ValueError, match="into itself"):
            mox.file.copy_parallel(f"{s3_folder}/d", target)
    with pytest.raises(OSError, match="into itself"):
        mox.file.rename(f"{s3_folder}/d", f"{other}/d/inner")
    proxy.requests.clear()
    mox.file.copy(f"{s3_folder}/d/a", f"{other}/b")
    # The content stayed in the store.
    assert not any(method == "GET" and target.endswith("/d/a") for method, target in proxy.requests)
    assert mox.file.read(f"{s3_folder}/b") == "kept"


@pytest.fixture
def two_pairs_of_keys(s3_folder, store, monkeypatch):
    """Keys for each of the two schemes, in variables of their own."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
        for cloud in ("AWS", "OBS"):
            monkeypatch.setenv(f"{cloud}_{name}", store.environment[name])


def test_one_store_with_keys_from_two_places(s3_folder, two_pairs_of_keys, monkeypatch):
    other = s3_folder.replace("s3://", "obs://")
    mox.file.write(f"{s3_folder}/d/a", "kept")
    mox.file.rename(f"{s3_folder}/d/a", f"{other}/d/a")
    mox.file.copy(f"{s3_folder}/d/a", f"{other}/d/a")
    with pytest.raises(ValueError, match="into itself"):
        mox.file.copy_parallel(f"{s3_folder}/d", f"{other}/d/inner")
    # It is the same object even for those who may not reach it under its other name.
    monkeypatch.setenv("OBS_SECRET_ACCESS_KEY", "another")
    mox.file.rename(f"{s3_folder}/d/a", f"{other}/d/a")
    assert mox.file.read(f"{s3_folder}/d/a") == "kept"
    # What one pair of keys may read, the other one may not write.
    with pytest.raises(mox.file.MoxFileRespException, match="OBS_ACCESS_KEY_ID"):
        mox.file.copy(f"{s3_folder}/d/a", f"{other}/b")
    assert mox.file.list_directory(s3_folder, recursive=True) == ["d", "d/a"]


def test_file_systems_of_several_hosts_and_names():
    """The scheme alone does not say which file system it is."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    class Hosts(MemoryFileSystem):
        stores = {}  # noqa: RUF012

        def __init__(self, host="", **options):
            super().__init__(**options)
            self.store, self.pseudo_dirs = self.stores.setdefault(host, {}), [""]

        @classmethod
        def _strip_protocol(cls, path):
            return "/" + path.partition("://")[2].partition("/")[2] if "://" in path else path

        @staticmethod
        def _get_kwargs_from_urls(path):
            return {"host": path.partition("://")[2].partition("/")[0]}

    for scheme in ("moxhost", "moxhosts"):
        fsspec.register_implementation(scheme, Hosts, clobber=True)
    mox.file.write("moxhost://one/a", "of one")
    mox.file.write("moxhost://one/b", "kept")
    mox.file.copy("moxhost://one/a", "moxhost://two/b")
    assert mox.file.read("moxhost://one/b") == "kept"
    assert mox.file.read("moxhost://two/b") == "of one"
    mox.file.rename("moxhost://two/b", "moxhosts://two/b")
    mox.file.rename("moxhosts://two/b", "moxhost://two/c")
    assert mox.file.read("moxhosts://two/c") == "of one"
    assert not mox.file.exists("moxhost://two/b")
    folder = os.urandom(8).hex()
    mox.file.write(f"memory://{folder}/a", "kept")
    mox.file.rename(f"memory://{folder}/a", f"memory:///{folder}/a")
    assert mox.file.read(f"memory://{folder}/a") == "kept"


def test_a_bar_on_a_terminal(large, tmp_path):
    """Both ways, one file and a directory; without a terminal there is none."""
    code = (
        "import moxing as mox, os\n"
        f"mox.file.copy({large!r}, 'one')\n"
        f"mox.file.copy_parallel({os.path.dirname(large)!r}, 'all')\n"
        f"mox.file.copy_parallel('all', {os.path.dirname(large) + '-up'!r})\n"
    )
    command = [sys.executable, "-c", code]
    quiet = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert (quiet.stdout, quiet.stderr) == (b"", b"")
    owner, terminal = pty.openpty()
    child = subprocess.Popen(command, cwd=tmp_path, stderr=terminal, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(owner, 65536):
            shown += chunk
    os.close(owner)
    assert child.wait() == 0
    assert shown.count(b"Copying") >= 3
    assert b"22.0" in shown
