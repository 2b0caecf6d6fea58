"""Modules and names that SciPy, scikit-learn and Pillow had in 2018, in a program."""

from __future__ import annotations

import textwrap

import pytest

from helpers.launcher import output_of
from moxing.tf1.era import old_libraries

PROGRAM = """
    import numpy as np
    import scipy
    import scipy.misc
    import scipy.misc as misc
    from scipy import misc as again
    from scipy.misc import imread, imresize, imsave, logsumexp, toimage, imrotate, factorial, comb
    assert misc is again is scipy.misc and scipy.misc.imread is imread and scipy.__version__
    picture = (np.arange(48) * 5).astype(np.uint8).reshape(4, 4, 3)
    imsave('a.png', picture)
    assert (imread('a.png') == picture).all() and imread('a.png', mode='L').shape == (4, 4)
    assert imread('a.png', flatten=True).dtype == np.float32
    assert imresize(picture, (2, 8)).shape == (2, 8, 3) and imresize(picture, 0.5).shape == (2, 2, 3)
    assert imresize(picture, 200, interp='nearest').shape == (8, 8, 3)
    assert toimage(np.array([[0.0, 1.0]])).size == (2, 1) and imrotate(picture, 90).shape == (4, 4, 3)
    assert abs(logsumexp([0.0, 0.0]) - np.log(2)) < 1e-12 and factorial(4) == 24 and comb(4, 2) == 6

    from sklearn.cross_validation import train_test_split
    from sklearn.externals import joblib
    import sklearn.externals.joblib as joblib_again
    from sklearn.grid_search import GridSearchCV
    from sklearn.datasets import load_iris, fetch_mldata
    from sklearn.utils.linear_assignment_ import linear_assignment
    from sklearn.preprocessing import Imputer, StandardScaler
    assert joblib is joblib_again and joblib.dump and GridSearchCV and StandardScaler and Imputer
    a, b = train_test_split(np.arange(10), test_size=0.3)
    assert len(a) == 7
    assert linear_assignment(np.array([[4, 1], [2, 8]])).tolist() == [[0, 1], [1, 0]]
    from sklearn.manifold import TSNE
    assert TSNE(n_components=2, n_iter=300).max_iter == 300
    for wrong in (lambda: fetch_mldata('MNIST original'), lambda: imread('missing.png')):
        try:
            wrong()
        except (NotImplementedError, FileNotFoundError) as error:
            print(type(error).__name__)

    from PIL import Image
    import PIL.Image
    assert Image.ANTIALIAS == Image.LANCZOS and PIL.Image is Image
    print(Image.fromarray(picture).resize((2, 2), Image.ANTIALIAS).size)
"""


def test_a_program_of_2018(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(PROGRAM))
    assert output_of(script) == "NotImplementedError\nFileNotFoundError\n(2, 2)\n"


def test_what_is_gone_is_known():
    assert old_libraries.is_gone("sklearn.cross_validation") and not old_libraries.is_gone("sklearn")
    for name in ("sklearn.externals.joblib", "sklearn.metrics.ranking"):
        assert old_libraries.old_module(name) is not None
    with pytest.raises(NotImplementedError, match="fetch_california_housing"):
        old_libraries.NAMES["sklearn.datasets"]()["load_boston"]()()
