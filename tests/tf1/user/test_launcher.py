"""What the launcher runs, and what it says when it cannot. No process here imports TensorFlow."""

import pytest

from helpers.launcher import warm_moxing
from moxing.tf1.user import launcher
from moxing.tf1.user.child_processes import Launch


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (Launch("missing.py"), r"there is no script 'missing.py' in .*"),
        (Launch("folder"), r"folder is a directory without a __main__.py. Give the script to run"),
    ],
)
def test_what_cannot_be_launched(tmp_path, monkeypatch, launch, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(launcher.LaunchError, match=message):
        launcher.run(launch)


@pytest.mark.parametrize("name", ["no_such_package.train", "sys"])
def test_modules_that_cannot_be_launched(tmp_path, name):
    done = warm_moxing("run", "-m", name, cwd=tmp_path)
    assert done.returncode == 2 and f"no module named {name!r} with a source file" in done.stderr


def test_a_directory_with_a_main_is_found(tmp_path):
    (tmp_path / "__main__.py").write_text("")
    assert launcher._locate(Launch(str(tmp_path))) == str(tmp_path / "__main__.py")


def test_frames_of_the_launcher_are_removed_from_a_traceback():
    code = compile("def fail():\n    raise ValueError('inside')\n", launcher.__file__, "exec")
    scope = {}
    exec(code, scope)
    try:
        try:
            scope["fail"]()
        except ValueError as error:
            raise KeyError("outside") from error
    except KeyError as error:
        launcher._strip(error, set())
        files = []
        for one in (error, error.__cause__):
            entry = one.__traceback__
            while entry is not None:
                files.append(entry.tb_frame.f_code.co_filename)
                entry = entry.tb_next
    assert files == [__file__, __file__]
