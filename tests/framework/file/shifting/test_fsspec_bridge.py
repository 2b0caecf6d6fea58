"""pandas and other users of fsspec."""

import gzip
import os
import urllib.request

import numpy as np
import numpy.lib._datasource
import pandas as pd
import pytest

import moxing as mox


@pytest.fixture
def shifted():
    mox.file.shift("os", "mox")
    yield
    mox.file.shift("mox", "os")


@pytest.mark.parametrize("scheme", ["s3", "obs"])
def test_pandas_and_numpy_take_urls(s3_folder, shifted, scheme, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = s3_folder.replace("s3://", f"{scheme}://")
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    frame.to_csv(f"{folder}/x.csv", index=False)
    assert pd.read_csv(f"{folder}/x.csv").equals(frame)
    frame.to_json(f"{folder}/x.json")
    assert pd.read_json(f"{folder}/x.json").equals(frame)
    array = np.arange(12.0).reshape(3, 4)
    np.save(f"{folder}/x.npy", array)
    assert (np.load(f"{folder}/x.npy") == array).all()
    np.savez(f"{folder}/x.npz", array=array)
    with np.load(f"{folder}/x.npz") as loaded:
        assert (loaded["array"] == array).all()
    np.savetxt(f"{folder}/x.txt", array)
    assert (np.loadtxt(f"{folder}/x.txt") == array).all()
    np.savetxt(f"{folder}/x.txt", 2 * array)
    assert (np.genfromtxt(f"{folder}/x.txt") == 2 * array).all()
    with open(f"{folder}/x.txt.gz", "wb") as f:
        f.write(gzip.compress(b"1 2\n3 4\n"))
    assert np.loadtxt(f"{folder}/x.txt.gz").tolist() == [[1, 2], [3, 4]]
    for ending in ("gz", "bz2", "xz"):
        open(f"{folder}/y.{ending}", "w").close()
        np.savetxt(f"{folder}/y.{ending}", 3 * array)
        assert np.loadtxt(f"{folder}/y.{ending}").tolist() == (3 * array).tolist()
    with np.lib._datasource.open(f"{folder}/z.gz", "wb") as f:
        f.write(b"packed")
    with open(f"{folder}/z.gz", "rb") as f:
        assert gzip.decompress(f.read()) == b"packed"
    assert os.listdir(tmp_path) == []


def test_the_web_stays_the_web(tmp_path, shifted):
    assert not os.path.exists("https://example.com/a")
    assert not os.path.isfile("http://example.com/a")
    with pytest.raises(FileNotFoundError):
        os.stat("http://example.com/a")
    (tmp_path / "x").write_text("by file url")
    with urllib.request.urlopen(f"file://{tmp_path}/x") as answer:
        assert answer.read() == b"by file url"
        assert not isinstance(answer, mox.file.File)
    with pytest.raises(urllib.error.URLError, match="unknown url type"):
        urllib.request.urlopen("nosuch://host/a")


def test_fsspec_is_as_before_when_shifted_back(s3_folder):
    import fsspec

    before = dict(fsspec.registry)
    mox.file.shift("os", "mox")
    with fsspec.open(f"{s3_folder}/a.txt", "w") as f:
        f.write("by fsspec")
    assert fsspec.filesystem("s3").ls(s3_folder, detail=False) == [f"{s3_folder}/a.txt".removeprefix("s3://")]
    mox.file.shift("mox", "os")
    assert dict(fsspec.registry) == before
    assert mox.file.read(f"{s3_folder}/a.txt") == "by fsspec"
