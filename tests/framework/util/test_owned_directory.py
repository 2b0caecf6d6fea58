import fcntl
import os
import shutil
import subprocess
import sys

from moxing.framework.util.owned_directory import OwnedDirectory

HOLD = """
import os, sys
from moxing.framework.util.owned_directory import OwnedDirectory
print(OwnedDirectory(sys.argv[1], "mine-").path, flush=True)
sys.stdin.read()
os._exit(9)
"""


def test_what_a_dead_process_left_is_removed_by_the_next(tmp_path):
    arguments = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        theirs = tmp_path / other.stdout.readline().strip().rpartition("/")[2]
        (theirs / "file").write_text("half")
        OwnedDirectory(str(tmp_path), "mine-").remove()
        assert (theirs / "file").exists(), "its process lives"
        other.kill()
    OwnedDirectory(str(tmp_path), "other-").remove()
    assert theirs.exists(), "its name begins with something else"
    OwnedDirectory(str(tmp_path), "mine-").remove()
    assert list(tmp_path.iterdir()) == []


def test_what_is_to_stay_stays(tmp_path):
    kept = OwnedDirectory(str(tmp_path), "mine-")
    kept.release()
    (tmp_path / "mine-of-a-user").mkdir()
    OwnedDirectory(str(tmp_path), "mine-").remove()
    assert len(list(tmp_path.iterdir())) == 2


def test_what_was_left_to_stay_is_known(tmp_path, monkeypatch):
    assert OwnedDirectory.released(str(tmp_path / "none"), "mine-") == []
    kept, held = OwnedDirectory(str(tmp_path), "mine-"), OwnedDirectory(str(tmp_path), "mine-")
    kept.release()
    assert OwnedDirectory.released(str(tmp_path), "mine-") == [kept.path]
    assert OwnedDirectory.released(str(tmp_path), "other-") == []
    monkeypatch.setattr(os, "getuid", lambda: os.stat(kept.path).st_uid + 1)
    assert OwnedDirectory.released(str(tmp_path), "mine-") == [], "another user's, in which nothing can be seen"
    held.remove()


def test_what_is_left_to_stay_while_another_process_looks_at_it_stays(tmp_path, monkeypatch):
    kept = OwnedDirectory(str(tmp_path), "mine-")
    file = tmp_path / os.path.basename(kept.path) / "file"
    file.write_text("not uploaded")
    lock = fcntl.flock

    def leave_first(descriptor, operation):
        if operation & fcntl.LOCK_NB:
            kept.release()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", leave_first)
    OwnedDirectory(str(tmp_path), "mine-").remove()
    assert file.read_text() == "not uploaded"


def test_it_is_made_where_nothing_is_yet_and_only_for_this_user(tmp_path):
    directory = OwnedDirectory(str(tmp_path / "a" / "b"), "mine-")
    (made,) = (tmp_path / "a" / "b").iterdir()
    assert str(made) == directory.path
    assert made.stat().st_mode & 0o777 == 0o700
    directory.remove()


def test_what_could_not_be_removed_is_removed_by_the_next(tmp_path, monkeypatch):
    directory = OwnedDirectory(str(tmp_path), "mine-")
    os.mkdir(os.path.join(directory.path, "folder"))
    with monkeypatch.context() as patches:
        patches.setattr(shutil, "rmtree", lambda *_, **__: None)
        directory.remove()
    assert not os.path.exists(directory.path), "a thread that goes on makes nothing there"
    assert [path.name for path in tmp_path.glob("*/folder")] == ["folder"]
    OwnedDirectory(str(tmp_path), "mine-").remove()
    assert list(tmp_path.iterdir()) == []
