"""tf.contrib.learn.datasets: files of numbers, and data sets that need no file."""

import numpy as np
import pytest

from moxing.tf1.contrib.learn import datasets


def test_csv_files(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("2,3,setosa,versicolor\n1,2,3,0\n4,5,6.5,1\n")
    found = datasets.base.load_csv_with_header(str(path), np.int64, np.float32)
    assert found.data.tolist() == [[1, 2, 3], [4, 5, 6.5]] and found.target.tolist() == [0, 1]
    assert found.data.dtype == np.float32 and found.target.dtype == np.int64
    path.write_text("7,1,2\n8,3,4\n")
    found = datasets.load_csv_without_header(str(path), np.int32, np.float64, target_column=0)
    assert found.target.tolist() == [7, 8] and found.data.tolist() == [[1, 2], [3, 4]]
    path.write_text("3,2\n1,2,0\n")
    with pytest.raises(ValueError, match=r"says 3 rows of 2 features, the file has \(1, 2\)"):
        datasets.load_csv_with_header(str(path), np.int64, np.float32)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="use load_csv_without_header"):
        datasets.load_csv_with_header(str(path), np.int64, np.float32)
    path.write_text("1\n2\n3\n4\n")
    datasets.shrink_csv(str(path), 2)
    assert (tmp_path / "iris_small.csv").read_text() == "1\n3\n"


def test_data_sets_by_name():
    iris = datasets.load_dataset("iris")
    assert iris.data.shape == (150, 4) and np.bincount(iris.target).tolist() == [50, 50, 50]
    for name in ("circles", "spirals"):
        data, target = datasets.load_dataset(name)
        assert data.shape == (100, 2) and np.bincount(target).tolist() == [50, 50]
    data, target = datasets.circles(40, seed=3, factor=0.5)
    np.testing.assert_allclose(np.hypot(*data.T), np.where(target == 1, 0.5, 1.0))
    data, target = datasets.synthetic.spirals(40, noise=0.1, seed=3)
    again, _ = datasets.spirals(40, noise=0.1, seed=3)
    np.testing.assert_array_equal(data, again)


def test_what_would_have_to_be_downloaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="MNIST file not found: MNIST-data"):
        datasets.load_dataset("mnist")
    with pytest.raises(ValueError, match="'dbpedia' is not downloaded"):
        datasets.text_datasets.load_dbpedia()
    with pytest.raises(FileNotFoundError, match="no package has this data set any more"):
        datasets.load_dataset("boston")
    with pytest.raises(ValueError, match="expected one of boston, circles, iris, mnist, spirals"):
        datasets.load_dataset("cifar")
    with pytest.raises(FileNotFoundError, match="Nothing is downloaded: get it from http://x"):
        datasets.maybe_download("a.zip", str(tmp_path), "http://x")
    (tmp_path / "a.zip").write_text("")
    assert datasets.maybe_download("a.zip", str(tmp_path), "http://x") == str(tmp_path / "a.zip")
    images = datasets.mnist.read_data_sets("", fake_data=True).train.next_batch(1)[0]
    assert len(images[0]) == 784 and datasets.Datasets(1, 2, 3).validation == 2
