"""Modules and names that SciPy, scikit-learn and Pillow had in 2018."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from moxing.tf1.era.module_view import Maker, Names, constants

#: Modules that are gone, and the modules that have their contents today.
MODULES: dict[str, str] = {
    "scipy.misc": "moxing.tf1.era.old_scipy",
    "scipy.misc.pilutil": "moxing.tf1.era.old_scipy",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.lda": "sklearn.discriminant_analysis",
    "sklearn.learning_curve": "sklearn.model_selection",
    "sklearn.qda": "sklearn.discriminant_analysis",
    "sklearn.utils.linear_assignment_": "moxing.tf1.era.old_sklearn",
    **{
        f"sklearn.{old}": f"sklearn.{old.rpartition('.')[0]}"
        for old in (
            "cluster.k_means_",
            "datasets.samples_generator",
            "decomposition.pca",
            "ensemble.forest",
            "feature_extraction.stop_words",
            "linear_model.logistic",
            "manifold.t_sne",
            "metrics.classification",
            "metrics.ranking",
            "neighbors.unsupervised",
            "preprocessing.data",
            "preprocessing.label",
            "svm.classes",
            "tree.tree",
            "utils.testing",
        )
    },
}

#: Constants of `PIL.Image` that have other names since Pillow 10.
_RENAMED_FILTERS = {"ANTIALIAS": "LANCZOS", "LINEAR": "BILINEAR", "CUBIC": "BICUBIC"}


def _imported(module: str, name: str = "") -> Maker:
    def make() -> Any:
        found = old_module(module) or importlib.import_module(module)
        return getattr(found, name) if name else found

    return make


def _no_names() -> Names:
    return {}


def _image_names() -> Names:
    from PIL import Image

    return {old: functools.partial(getattr, Image, new) for old, new in _RENAMED_FILTERS.items()}


def _scipy_names() -> Names:
    return {"misc": _imported("scipy.misc")}


def _sklearn_names() -> Names:
    names = ("cross_validation", "grid_search", "lda", "learning_curve", "qda")
    return {name: _imported(f"sklearn.{name}") for name in names}


def _sklearn_externals_names() -> Names:
    return {name: _imported(name) for name in ("joblib", "six")}


def _sklearn_datasets_names() -> Names:
    return constants(fetch_mldata=_fetch_mldata, load_boston=_load_boston)


def _sklearn_manifold_names() -> Names:
    from sklearn import manifold

    class TSNE(manifold.TSNE):
        """`sklearn.manifold.TSNE`, which also takes `n_iter`, the old name of `max_iter`."""

        def __init__(self, n_components: int = 2, *, n_iter: int | None = None, **settings: Any) -> None:
            if n_iter is not None:
                settings.setdefault("max_iter", n_iter)
            super().__init__(n_components, **settings)

    # scikit-learn reads the parameters of an estimator from the signature.
    TSNE.__init__.__signature__ = inspect.signature(manifold.TSNE.__init__)  # type: ignore[attr-defined]
    return constants(TSNE=TSNE)


def _sklearn_preprocessing_names() -> Names:
    return {"Imputer": _imported("sklearn.impute", "SimpleImputer")}


#: For each module, the function that returns its old names. A package is listed for the modules below it.
NAMES: dict[str, Callable[[], Names]] = {
    "PIL": _no_names,
    "PIL.Image": _image_names,
    "scipy": _scipy_names,
    "sklearn": _sklearn_names,
    "sklearn.datasets": _sklearn_datasets_names,
    "sklearn.externals": _sklearn_externals_names,
    "sklearn.manifold": _sklearn_manifold_names,
    "sklearn.preprocessing": _sklearn_preprocessing_names,
}


def _fetch_mldata(dataname: str, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        f"sklearn.datasets.fetch_mldata({dataname!r}): the site mldata.org is gone. Use "
        "sklearn.datasets.fetch_openml('mnist_784'), or tensorflow.examples.tutorials.mnist.input_data for MNIST."
    )


def _load_boston(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "sklearn.datasets.load_boston: scikit-learn no longer has this data set. Use "
        "sklearn.datasets.fetch_california_housing, or fetch_openml(name='boston', version=1)."
    )


def is_gone(name: str) -> bool:
    """Returns True for a module that is gone or, as `scipy.misc`, an empty module that warns.

    Example:
      >>> is_gone('scipy.misc'), is_gone('scipy.special')
      (True, False)
    """
    return name in MODULES


@functools.cache
def old_module(name: str) -> ModuleType | None:
    """Returns what serves a module that is gone, or None if it is not one of those.

    Example:
      >>> old_module('scipy.misc').__name__
      'moxing.tf1.era.old_scipy'
      >>> old_module('scipy.special') is None
      True
    """
    if name not in MODULES:
        return None
    return importlib.import_module(MODULES[name])
