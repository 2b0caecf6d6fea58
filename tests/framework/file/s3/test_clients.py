"""Clients: recreated on changes, separate after a fork."""

import os

import pytest
import store_server

import moxing as mox
from moxing.framework.file.auth import Settings, restore_settings
from moxing.framework.file.s3.clients import get_client

SECRET = store_server.SECRET_KEY


@pytest.fixture(autouse=True)
def no_settings(own_settings):
    restore_settings(Settings())


def test_a_change_of_settings_counts_at_once(s3_folder, monkeypatch):
    mox.file.write(f"{s3_folder}/a", "x")
    monkeypatch.setenv("SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(mox.file.MoxFileRespException, match="SECRET_ACCESS_KEY"):
        mox.file.read(f"{s3_folder}/a")
    mox.file.set_auth(ak=store_server.ACCESS_KEY, sk=SECRET)
    assert mox.file.read(f"{s3_folder}/a") == "x"
    client = get_client("s3")
    assert get_client("s3") is client


def test_a_child_of_a_fork_makes_connections_of_its_own(s3_folder):
    mox.file.write(f"{s3_folder}/a", "x" * 1000)
    client = get_client("s3")
    child = os.fork()
    if child == 0:
        try:
            fresh = get_client("s3") is not client
            same = all(mox.file.read(f"{s3_folder}/a") == "x" * 1000 for _ in range(20))
            os._exit(0 if fresh and same else 1)
        except BaseException:
            os._exit(2)
    assert all(mox.file.read(f"{s3_folder}/a") == "x" * 1000 for _ in range(20))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_file_that_is_open_while_its_process_forks(s3_folder):
    """Its connection stays with the parent: two on one would read each other's bytes."""
    content = b"".join(n.to_bytes(8, "big") for n in range(1 << 18))
    mox.file.write(f"{s3_folder}/a", content, binary=True)

    def reads_right(f, seed):
        places = [(place * 7919 * seed) % (len(content) - 80_000) for place in range(1, 31)]
        return all((f.seek(place), f.read(80_000))[1] == content[place : place + 80_000] for place in places)

    with mox.file.File(f"{s3_folder}/a", "rb") as f:
        assert reads_right(f, 1)
        children = []
        for seed in (2, 3):
            children.append(os.fork())
            if children[-1] == 0:
                try:
                    os._exit(0 if reads_right(f, seed) else 1)
                except BaseException:
                    os._exit(2)
        assert reads_right(f, 5)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
