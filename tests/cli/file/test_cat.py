"""`moxing file cat`."""

import subprocess
import sys

import moxing as mox


def test_cat(root, run):
    assert run("cat", f"{root}/a.txt") == ["hello"]
    assert run("cat", f"{root}/*.txt", f"{root}/sub/deep/d.txt") == ["hellod"]
    mox.file.write(f"{root}/bytes", bytes(range(256)) * 9000, binary=True)
    code = "import sys; from moxing.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, "file", "cat", f"{root}/bytes"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, bytes(range(256)) * 9000, b"")


def test_cat_looks_before_it_writes(root, run):
    assert "PATH is a directory, give files" in run("cat", f"{root}/a.txt", f"{root}/sub", code=2)
    assert "no such file or directory" in run("cat", f"{root}/a.txt", f"{root}/none", code=2)


def test_who_reads_may_stop(tmp_path):
    for number in range(3000):
        (tmp_path / f"{number:05d}-with-a-name-that-fills-the-pipe-sooner").touch()
    done = subprocess.run(
        f"{sys.executable} -m moxing file ls {tmp_path} | head -1", shell=True, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
