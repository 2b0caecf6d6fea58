"""Pickles of Python 2."""

import io
import pickle

import numpy as np
import pytest

from moxing.tf1.era import old_pickle

#: An array of one byte, 200, as Python 2 pickles it: its content is a text.
ARRAY = (
    b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I1\ntcnumpy\ndtype\n(S'u1'\nI0\nI1\n"
    b"tR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\xc8'\ntb."
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arrays_of_python_2_after_other_content_of_the_file():
    with pytest.raises(UnicodeDecodeError):
        pickle.loads(ARRAY)
    for array in (old_pickle.loads(ARRAY), old_pickle.load(io.BytesIO(ARRAY))):
        assert array.tolist() == [200] and array.dtype == np.uint8
    stream = io.BytesIO(pickle.dumps("first") + ARRAY)
    assert old_pickle.load(stream) == "first" and old_pickle.load(stream).tolist() == [200]


def test_files_opened_as_text(tmp_path):
    path = tmp_path / "vocabulary.pkl"
    with open(path, "w") as file:
        old_pickle.dump({"a": 1}, file)
    with open(path) as file:
        assert old_pickle.load(file) == {"a": 1}


def test_options_are_those_of_pickle():
    assert old_pickle.loads(b"S'\\xc8'\n.", encoding="bytes") == b"\xc8"
    with pytest.raises(UnicodeDecodeError):
        old_pickle.load(io.BytesIO(b"S'\\xc8'\n."), encoding="ascii")
