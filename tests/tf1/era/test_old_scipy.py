"""scipy.misc of 2018."""

import numpy as np
import pytest

from moxing.tf1.era import old_scipy


def test_values_are_scaled_to_bytes():
    assert old_scipy.bytescale(np.array([-1.0, 0.0, 3.0])).tolist() == [0, 64, 255]
    assert old_scipy.bytescale(np.array([0.0, 2.0]), cmin=0, cmax=4, high=100).tolist() == [0, 50]
    assert old_scipy.bytescale(np.array([5, 5])).tolist() == [0, 0]
    same = np.array([3], np.uint8)
    assert old_scipy.bytescale(same) is same
    with pytest.raises(ValueError, match="low and high"):
        old_scipy.bytescale([1.0], high=300)


def test_pictures():
    picture = np.random.RandomState(0).randint(0, 255, [6, 4, 3]).astype(np.uint8)
    assert (np.array(old_scipy.toimage(picture)) == picture).all()
    # Channels may come first.
    assert (np.array(old_scipy.toimage(picture.transpose(2, 0, 1))) == picture).all()
    gray = old_scipy.toimage(np.array([[0.0, 2.0]]), mode="F")
    assert np.array(gray).tolist() == [[0, 2]]
    assert old_scipy.toimage(np.array([[0, 9]]), cmin=0, cmax=18).getpixel((1, 0)) == 128
    doubled = old_scipy.imresize(picture, 2.0, "nearest")
    assert (doubled == picture.repeat(2, 0).repeat(2, 1)).all()
    assert (old_scipy.imrotate(np.full([4, 4], 7, np.uint8), 90) == 7).all()
    with pytest.raises(ValueError, match="interp='best'"):
        old_scipy.imresize(picture, 2, "best")
    with pytest.raises(ValueError, match=r"suitable array shape for any mode: \(1, 2, 2\)"):
        old_scipy.toimage(np.zeros([1, 2, 2]))
    with pytest.raises(NotImplementedError, match="putpalette"):
        old_scipy.toimage(picture, pal=[1])
    with pytest.raises(AttributeError, match="'scipy.misc' has no attribute 'derivative_of'"):
        _ = old_scipy.derivative_of
