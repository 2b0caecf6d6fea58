"""What a child process is told about the launched script."""

import os
from multiprocessing import spawn

from moxing.tf1.user import child_processes
from moxing.tf1.user.child_processes import Launch


def test_a_launch_survives_the_environment(monkeypatch):
    monkeypatch.setenv(child_processes._VARIABLE, "")
    launch = Launch("package.train", is_module=True, legacy=["old"])
    child_processes.remember(launch)
    assert child_processes.remembered() == launch


def test_children_run_the_launcher_in_place_of_the_script(monkeypatch):
    paths = {"sys_path": [], "init_main_from_path": "/home/me/train.py"}
    monkeypatch.setattr(spawn, "get_preparation_data", lambda name: dict(paths))
    child_processes.install()
    child_processes.install()
    path = spawn.get_preparation_data("child")["init_main_from_path"]
    assert os.path.basename(path) == "spawned_main.py" and os.path.isfile(path)
    # A module is named and not located; a program that has no main script stays as it is.
    paths = {"init_main_from_name": "package.train"}
    assert spawn.get_preparation_data("child") == {"init_main_from_path": path}
    paths = {"sys_path": []}
    assert spawn.get_preparation_data("child") == {"sys_path": []}
