"""Endpoints: addresses, path style and virtual hosts."""

import socket

import pytest

import moxing as mox
from moxing.framework.file.auth import Settings, restore_settings
from moxing.framework.file.s3.endpoints import uses_path_style


@pytest.fixture(autouse=True)
def no_settings(own_settings):
    restore_settings(Settings())


def test_virtual_hosts_where_the_cloud_wants_them():
    huawei = "obs.cn-north-4.myhuaweicloud.com"
    assert not uses_path_style(huawei, "data", True, None)
    assert not uses_path_style("s3.eu-west-1.amazonaws.com", "data", True, None)
    assert uses_path_style(huawei, "with.dots", True, None)
    assert uses_path_style(huawei, "Upper_case", True, None)
    assert uses_path_style("minio.example.com", "data", True, None)
    assert not uses_path_style("minio.example.com", "data", True, False)
    assert uses_path_style(huawei, "data", True, True)


def test_virtual_hosts_on_a_real_store(s3_folder, store, monkeypatch):
    """The server knows itself as store.localhost; no name server does."""
    original = socket.getaddrinfo
    asked = []

    def resolve(host, *args, **kwargs):
        asked.append(host)
        return original("127.0.0.1" if str(host).endswith(".localhost") else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    mox.file.set_auth(server=f"http://store.localhost:{store.port}", path_style=False)
    mox.file.write(f"{s3_folder}/a b", "virtual")
    mox.file.write(f"{s3_folder}/c", "x")
    assert mox.file.list_directory(s3_folder) == ["a b", "c"]
    assert "tests.store.localhost" in asked
    mox.file.set_auth(path_style=True)
    assert mox.file.read(f"{s3_folder}/a b") == "virtual"
