"""The names of NumPy of 2018."""

import numpy as np
import pytest

from moxing.tf1.era import old_numpy


def test_every_name_has_a_value():
    for name, make in {**old_numpy.names(), **old_numpy.lib_names(), **old_numpy.random_names()}.items():
        assert make() is not None, name


@pytest.mark.parametrize(("old", "new"), sorted(old_numpy._RENAMED.items()))
def test_renamed_names_are_those_of_today(old, new):
    assert old_numpy.names()[old]() is getattr(np, new)


def test_fromstring_copies_binary_data_and_parses_text():
    fromstring = old_numpy.names()["fromstring"]()
    data = bytes([1, 2, 3])
    array = fromstring(data, np.uint8)
    array[0] = 9
    assert array.tolist() == [9, 2, 3] and data == bytes([1, 2, 3])
    assert fromstring("1 2", sep=" ").tolist() == [1, 2]


def test_functions():
    names = {name: make() for name, make in old_numpy.names().items()}
    assert names["asscalar"](np.array([3])) == 3 and names["msort"]([[2, 1], [0, 3]]).tolist() == [[0, 1], [2, 3]]
    assert names["find_common_type"]([np.float32], [np.int64]) == np.float64
    assert names["issubsctype"](np.float32, np.floating) and names["obj2sctype"]("f4") is np.float32
    assert names["sctype2char"](np.float64) == "d"
    drawn = old_numpy.random_names()["random_integers"]()(1, 2, size=50)
    assert set(drawn) == {1, 2}


def test_arrays_of_objects_are_read_as_in_2018(tmp_path):
    load = old_numpy.names()["load"]()
    objects = np.array([{"a": 1}], dtype=object)
    np.save(tmp_path / "one.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "many.npz", objects=objects, numbers=np.arange(3))
    assert load(tmp_path / "one.npy")[0] == {"a": 1}
    with open(tmp_path / "one.npy", "rb") as file:
        assert load(file).item() == {"a": 1}
    with load(tmp_path / "many.npz") as archive:
        assert archive["objects"][0] == {"a": 1} and archive["numbers"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load(tmp_path / "one.npy", allow_pickle=False)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.npy")


def test_reshape_and_scalar_types():
    reshape = old_numpy.names()["reshape"]()
    assert reshape(np.arange(4), newshape=(2, 2)).shape == reshape(np.arange(4), (2, 2), "F").shape == (2, 2)
    assert np.float32 in old_numpy.names()["sctypes"]()["float"]


def test_rows_of_different_lengths_are_objects():
    array = old_numpy.names()["array"]()
    ragged = array(list(zip([[1, 2, 3], [4, 5, 6]], [[1, 0], [0, 1]], strict=True)))
    assert ragged.dtype == object and ragged.shape == (2, 2) and ragged[1, 1] == [0, 1]
    assert array([[1, 2], [3, 4]]).dtype == np.int64
    own = np.arange(3)
    assert array([1, 2], copy=False).tolist() == [1, 2] and array(own, copy=False) is own
    for arguments in [([[1], [2, 3]], np.int32), (["x", [1]], float)]:
        with pytest.raises(ValueError):
            array(*arguments)
