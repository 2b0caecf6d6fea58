"""`moxing file ls`, `cat`, `du` and `rm` on a disk and on a real store: output, exit codes, errors."""

import os
import subprocess
import sys

import pytest

import moxing as mox
from moxing.cli import main

FILES = {"a.txt": "hello", "b.jpg": "123", "sub/c.txt": "c" * 1500, "sub/deep/d.txt": "d", "sub-twin/e.txt": "e"}


@pytest.fixture(params=["disk", "store"])
def root(request, tmp_path):
    """A directory with a few files, on the disk or in the store."""
    root = str(tmp_path / "data") if request.param == "disk" else f"{request.getfixturevalue('s3_folder')}/data"
    for name, content in FILES.items():
        if request.param == "disk":
            mox.file.make_dirs(os.path.dirname(f"{root}/{name}"))
        mox.file.write(f"{root}/{name}", content)
    return root


@pytest.fixture
def run(capfd):
    """Runs a command; returns its lines, or the line of its error."""

    def call(*words, code=0):
        assert main.main(["file", *words]) == code
        out, err = capfd.readouterr()
        if code:
            assert out == ""
            assert err.count("\n") == 1
            assert "Traceback" not in err
            return err.strip()
        assert err == ""
        return out.splitlines()

    return call


def names(root, lines):
    return [line.removeprefix(f"{root}/") for line in lines]


# --- ls ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slash", ["", "/"])
def test_ls_lists_a_directory(root, run, slash):
    assert names(root, run("ls", root + slash)) == ["a.txt", "b.jpg", "sub/", "sub-twin/"]
    assert run("ls", f"{root}/a.txt") == [f"{root}/a.txt"]


def test_ls_recursive(root, run):
    assert sorted(names(root, run("ls", "-r", root))) == sorted([*FILES, "sub/", "sub/deep/", "sub-twin/"])
    assert names(root, run("ls", "--recursive", f"{root}/sub")) == ["sub/c.txt", "sub/deep/", "sub/deep/d.txt"]


def test_ls_patterns(root, run):
    assert names(root, run("ls", f"{root}/*.txt", f"{root}/b.*")) == ["a.txt", "b.jpg"]
    assert names(root, run("ls", f"{root}/su*")) == ["sub/", "sub-twin/"]
    assert names(root, run("ls", f"{root}/**/*.txt")) == ["a.txt", "sub-twin/e.txt", "sub/c.txt", "sub/deep/d.txt"]
    assert names(root, run("ls", f"{root}/[ab].*", f"{root}/a.txt")) == ["a.txt", "b.jpg"]
    assert names(root, run("ls", "-r", f"{root}/sub?*")) == ["sub-twin/", "sub-twin/e.txt"]


def test_a_name_that_looks_like_a_pattern(root, run):
    mox.file.write(f"{root}/a[1]*.txt", "x")
    mox.file.write(f"{root}/a1.txt", "y")
    assert run("ls", f"{root}/a[1]*.txt") == [f"{root}/a[1]*.txt"]
    assert run("cat", f"{root}/a[1]*.txt") == ["x"]


def test_ls_sizes(root, run):
    lines = [line.split() for line in run("ls", "-l", f"{root}/sub", f"{root}/a.txt")]
    assert [(line[0], line[-1]) for line in lines] == [
        ("1500", f"{root}/sub/c.txt"),
        ("-", f"{root}/sub/deep/"),
        ("5", f"{root}/a.txt"),
    ]
    assert lines[0][1].startswith("20")
    assert run("ls", "--human", f"{root}/sub/c.txt")[0].startswith("1.5 kB  20")


def test_ls_of_nothing(root, run):
    assert run("ls", f"{root}/none", code=2) == (
        f"moxing file ls: error: PATH='{root}/none': no such file or directory"
    )
    assert run("ls", f"{root}/*.none", code=2) == (
        f"moxing file ls: error: PATH='{root}/*.none': nothing matches this pattern"
    )
    assert "PATH is not a directory, leave out the slash" in run("ls", f"{root}/a.txt/", code=2)


def test_an_empty_directory(run, tmp_path, s3_folder):
    (tmp_path / "empty").mkdir()
    assert run("ls", str(tmp_path / "empty")) == []
    mox.file.make_dirs(f"{s3_folder}/empty")
    assert run("ls", f"{s3_folder}/empty") == []
    assert run("ls", s3_folder) == [f"{s3_folder}/empty/"]
    assert run("du", f"{s3_folder}/empty") == [f"0  0 files  {s3_folder}/empty/"]


def test_file_urls_are_local_paths(run, tmp_path):
    (tmp_path / "x").write_text("x")
    assert run("ls", f"file://{tmp_path}") == [f"{tmp_path}/x"]
    assert run("ls", f"file://{tmp_path}/*") == [f"{tmp_path}/x"]


# --- cat --------------------------------------------------------------------------------------------------------------


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


# --- du ---------------------------------------------------------------------------------------------------------------


def test_du(root, run):
    assert run("du", root) == [f"1510  5 files  {root}/"]
    assert run("du", "--human", f"{root}/sub") == [f"1.5 kB  2 files  {root}/sub/"]
    assert [line.split() for line in run("du", f"{root}/sub", f"{root}/a.txt")] == [
        ["1501", "2", "files", f"{root}/sub/"],
        ["5", "1", "file", f"{root}/a.txt"],
        ["1506", "3", "files", "total"],
    ]
    assert [line.split()[0] for line in run("du", "--depth", "1", root)] == ["1501", "1", "1510"]
    assert [line.split()[-1] for line in run("du", "--depth", "2", root)] == [
        f"{root}/{name}" for name in ("sub/", "sub/deep/", "sub-twin/", "")
    ]


# --- rm ---------------------------------------------------------------------------------------------------------------


def test_rm_says_what_it_removed(root, run):
    assert run("rm", f"{root}/a.txt", f"{root}/*.jpg") == [
        f"removed {root}/a.txt",
        f"removed {root}/b.jpg",
        "removed 2 files, 8 B",
    ]
    assert mox.file.list_directory(root) == ["sub", "sub-twin"]
    assert run("rm", "-r", f"{root}/sub/") == [
        f"removed {root}/sub/c.txt",
        f"removed {root}/sub/deep/d.txt",
        f"removed {root}/sub/",
        "removed 2 files, 1.5 kB",
    ]
    assert mox.file.list_directory(root, recursive=True, skip_dir=True) == ["sub-twin/e.txt"]


def test_rm_needs_recursive_for_a_directory(root, run):
    error = run("rm", f"{root}/a.txt", f"{root}/sub", code=2)
    assert error == (
        f"moxing file rm: error: {root}/sub: PATH is a directory, --recursive removes it with all that is in it"
    )
    assert run("rm", f"{root}/a.txt", f"{root}/none", code=2).endswith("no such file or directory")
    assert sorted(mox.file.list_directory(root, recursive=True, skip_dir=True)) == sorted(FILES)


def test_rm_of_directories_in_each_other(root, run):
    lines = run("rm", "-r", f"{root}/sub/**", f"{root}/sub/deep", f"{root}/sub-twin")
    assert lines[-1] == "removed 3 files, 1.5 kB"
    assert sorted(mox.file.list_directory(root, recursive=True)) == ["a.txt", "b.jpg"]


def test_rm_dry_run_removes_nothing(root, run):
    assert run("rm", "--dry-run", "-r", f"{root}/sub*")[-1] == "would remove 3 files, 1.5 kB"
    assert sorted(mox.file.list_directory(root, recursive=True, skip_dir=True)) == sorted(FILES)


def test_rm_follows_no_links(run, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "x").write_text("x")
    (tmp_path / "go").mkdir()
    (tmp_path / "go" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "go" / "broken").symlink_to("nowhere")
    (tmp_path / "alone").symlink_to(tmp_path / "kept")
    assert run("rm", f"{tmp_path}/alone", f"{tmp_path}/go/brok*")[-1].startswith("removed 2 files")
    lines = run("rm", "-r", f"{tmp_path}/go")
    assert lines[:2] == [f"removed {tmp_path}/go/link", f"removed {tmp_path}/go/"]
    assert (tmp_path / "kept" / "x").read_text() == "x"
    assert os.listdir(tmp_path) == ["kept"]
    assert "other than the root of the file system" in run("rm", "-r", "--dry-run", "/", code=2)


def test_rm_of_a_key_that_is_a_directory_too(run, s3_folder):
    mox.file.write(f"{s3_folder}/both/x", "x")
    mox.file.write(f"{s3_folder}/both", "b")
    assert run("rm", f"{s3_folder}/both") == [f"removed {s3_folder}/both", "removed 1 file, 1 B"]
    mox.file.write(f"{s3_folder}/both", "b")
    assert run("ls", f"{s3_folder}/both") == [f"{s3_folder}/both"]
    assert run("ls", f"{s3_folder}/both/") == [f"{s3_folder}/both/x"]
    assert run("rm", "-r", f"{s3_folder}/both")[-1] == "removed 2 files, 2 B"
    assert not mox.file.exists(s3_folder)


# --- the command ------------------------------------------------------------------------------------------------------


def test_it_starts_without_tensorflow():
    code = (
        "import sys\nfrom moxing.cli.main import main\nmain(['file', 'ls', '/'])\n"
        "print({'tensorflow', 'numpy', 'urllib3'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"


def test_wrong_arguments(run, capfd):
    for words, message in (
        (["file"], "required: COMMAND"),
        (["file", "ls"], "required: PATH"),
        (["file", "cp", "a"], "required: DST"),
        (["file", "cp", "a", "b", "--threads", "0"], "'0': expected a positive integer"),
        (["file", "du", "--depth", "x", "a"], "'x': expected 0 or a positive integer"),
    ):
        with pytest.raises(SystemExit) as ended:
            main.main(words)
        assert ended.value.code == 2
        assert message in capfd.readouterr().err
    assert "PATH='s3://': expected s3://bucket or s3://bucket/key" in run("ls", "s3://", code=2)
    assert "PATH='nosuch://host/x'" in run("ls", "nosuch://host/x", code=2)


def test_wrong_keys_are_one_line(run, s3_folder, monkeypatch):
    monkeypatch.setenv("SECRET_ACCESS_KEY", "wrong-secret")
    error = run("ls", s3_folder, code=2)
    assert "403" in error
    assert "the keys came from the environment variables ACCESS_KEY_ID and SECRET_ACCESS_KEY" in error
    assert "wrong-secret" not in error


def test_a_store_that_is_not_there_is_one_line(run, s3_folder, monkeypatch):
    monkeypatch.setenv("S3_ENDPOINT", "http://127.0.0.1:9")
    mox.file.set_auth(retry=0)
    assert "NoConnection: nobody answers there (127.0.0.1:9)" in run("ls", s3_folder, code=2)


def test_a_wrong_address_in_the_environment(run, monkeypatch):
    monkeypatch.setenv("S3_ENDPOINT", "nonsense://")
    assert "error: environment variable S3_ENDPOINT='nonsense://': expected a host" in run("ls", "s3://b", code=2)


def test_an_unknown_option_shows_the_usage_of_the_command(capfd):
    with pytest.raises(SystemExit) as ended:
        main.main(["file", "ls", "--summarize", "s3://b"])
    error = capfd.readouterr().err
    assert ended.value.code == 2
    assert error.startswith("usage: moxing file ls")
    assert error.endswith("moxing file ls: error: unrecognized arguments: --summarize\n")


def test_who_reads_may_stop(tmp_path):
    for number in range(3000):
        (tmp_path / f"{number:05d}-with-a-name-that-fills-the-pipe-sooner").touch()
    done = subprocess.run(
        f"{sys.executable} -m moxing file ls {tmp_path} | head -1", shell=True, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
