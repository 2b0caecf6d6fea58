"""Rules of the code base that a test can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import moxing
import moxing.tensorflow as mox

SOURCE = Path(moxing.__file__).parent
#: The files of the projects that `moxing new` writes: data, not modules.
TEMPLATES = SOURCE / "cli" / "new" / "templates"

#: Packages from the ground up: a module imports from its own line or from lines above it.
LAYERS = [
    ("moxing._version",),
    ("moxing.framework",),
    ("moxing.tf1",),
    ("moxing.tensorflow.network_registry",),
    ("moxing.tensorflow.utils", "moxing.tensorflow.optimizer", "moxing.tensorflow.preprocessing"),
    ("moxing.tensorflow.nets",),
    ("moxing.tensorflow.datasets",),
    ("moxing.tensorflow.parallel", "moxing.tensorflow.cluster"),
    ("moxing.tensorflow.executor",),
    ("moxing.tensorflow.estimator",),
    ("moxing.tensorflow",),
    ("moxing.cli", "moxing.demo", "moxing.tools"),
]


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        if TEMPLATES in path.parents:
            continue
        name = ".".join(("moxing", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        yield name, ast.parse(path.read_text()), path


def layer(name: str) -> int | None:
    found = [
        (len(package), index)
        for index, packages in enumerate(LAYERS)
        for package in packages
        if name == package or name.startswith(package + ".")
    ]
    return max(found)[1] if found else None


def imports(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_point_one_way():
    wrong = [
        f"{name} imports {target}"
        for name, tree, _ in modules()
        for target in imports(tree)
        # Not seen here: the facade (tf.estimator) and `mox.file.shift` import a higher layer by its name, when a script
        # asks for it.
        if target.startswith("moxing.") and layer(name) is not None and (layer(target) or 0) > layer(name)
    ]
    assert wrong == []


def test_packages_of_tf1_do_not_import_each_other():
    """Except `user`, which may import all of them."""
    packages = {"contrib", "era", "estimator", "examples", "files", "graph", "user"}
    wrong = [
        f"{name} imports {target}"
        for name, tree, _ in modules()
        for target in imports(tree)
        if name.startswith("moxing.tf1.") and target.startswith("moxing.tf1.")
        if (own := name.split(".")[2]) in packages - {"user"} and target.split(".")[2] in packages - {own}
    ]
    assert wrong == []


def test_private_tensorflow_stays_in_tf1():
    wrong = [
        f"{name} imports {target}"
        for name, tree, _ in modules()
        if not name.startswith("moxing.tf1")
        for target in imports(tree)
        if target.startswith(("tensorflow.python", "tensorflow.core"))
    ]
    assert wrong == []


def test_no_pickle_no_assert_no_star():
    for name, tree, _ in modules():
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Assert), f"{name}:{node.lineno}: assert in library code"
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), f"{name}:{node.lineno}: star import"
        assert not {target.split(".")[0] for target in imports(tree)} & {"pickle", "dill"}, name


def test_import_moxing_is_light():
    code = "import sys, moxing; print(moxing.file.__name__, 'tensorflow' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["moxing.framework.file", "False", "False"]


PUBLIC = [
    *("AggregativeSessionRunHook", "ExportKeys", "ExportSpec", "InputSpec", "ModeKeys", "ModelSpec", "OptimizerKeys"),
    *("RunResult", "__version__", "cache", "file", "get_collection", "get_flag", "get_optimizer_fn", "run", "set_flag"),
    *("AsyncRawGenerator", "ImageClassificationRawDataset", "ImageClassificationRawMetadata"),
    *("ImageClassificationTFRecordDataset", "ImageClassificationTFRecordMetadata"),
    *("MultilabelClassificationRawDataset", "MultilabelClassificationRawMetadata", "PreprocessingKeys"),
    *("get_data_augmentation_fn", "get_dataset", "get_dataset_meta", "get_tfrecord", "var_scope"),
    *("EarlyStoppingHook", "LogEvaluationMetricHook", "PlateauLREarlyStoppingHook"),
    *("BestCheckpointHook", "GradientNormHook", "NanGuardHook", "ProfilerHook", "RunEndHook", "ThroughputHook"),
    *("NetworkKeys", "get_model_fn", "get_model_meta", "get_optimizer_wrapper_fn"),
]


def test_public_names():
    assert sorted(mox.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(mox, name) is not None


def test_missing_names_say_so():
    with pytest.raises(AttributeError, match="mox.auto: hyper-parameter search is not available in MoXing"):
        _ = mox.auto
    with pytest.raises(AttributeError, match="Did you mean mox.ModeKeys"):
        _ = mox.ModeKey
