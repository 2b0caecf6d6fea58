"""Sizes of files, folders and signatures, and a test file for every module with logic."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "moxing"
#: The files of the projects that `moxing new` writes: data, not modules. `tests/cli/new` checks them.
TEMPLATES = SOURCE / "cli" / "new" / "templates"

MOST_LINES = 400
MOST_FILES = 20
MOST_PARAMETERS = 6

#: Catalogues of equals: one network per file, one part of tf.contrib per file, and their tests.
CATALOGUES = {"src/moxing/tensorflow/nets", "tests/tensorflow/nets", "src/moxing/tf1/contrib"}

#: Signatures of the original MoXing, of TF-Slim's networks and of TensorFlow 1, which stay as they are.
ORIGINAL_SIGNATURES = {
    "AdamWOptimizer.__init__",
    "AttentionCellWrapper.__init__",
    "AttentionWrapper.__init__",
    "BahdanauAttention.__init__",
    "BahdanauMonotonicAttention.__init__",
    "BaseAttentionMechanism.__init__",
    "BaseTFRecordDataset.__init__",
    "BeamSearchDecoder.__init__",
    "BestCheckpointHook.__init__",
    "ConvLSTMCell.__init__",
    "CoupledInputForgetGateLSTMCell.__init__",
    "DataSet.__init__",
    "DgcOptimizer.__init__",
    "DyMomentumOptimizer.__init__",
    "EarlyStoppingHook.__init__",
    "EvaluationHook.__init__",  # that of LogEvaluationMetricHook, its subclass, and input_fn
    "Experiment.__init__",
    "GLSTMCell.__init__",
    "ImageClassificationTFRecordDataset.__init__",
    "LSTMBlockCell.__init__",
    "LambOptimizer.__init__",
    "LayerNormBasicLSTMCell.__init__",
    "LogEvaluationMetricHook.__init__",
    "LuongAttention.__init__",
    "LuongMonotonicAttention.__init__",
    "ModelSpec.__init__",
    "PhasedLSTMCell.__init__",
    "PlateauLREarlyStoppingHook.__init__",
    "ProgressiveImagenetDataset.__init__",
    "ScheduledEmbeddingTrainingHelper.__init__",
    "ScheduledOutputTrainingHelper.__init__",
    "ValidationMonitor.__init__",
    "_CudnnLayer.__init__",
    "_linear",
    "_minimize",
    "attention_decoder",
    "cond",
    "dynamic_decode",
    "embed_sequence",
    "embedding_attention_decoder",
    "embedding_attention_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "evaluate",
    "fit",
    "from_saved_model",
    "get_tfrecord",
    "model_with_buckets",
    "one2many_rnn_seq2seq",
    "polynomial_decay",
    "read_batch_examples",
    "read_batch_features",
    "read_batch_record_features",
    "read_data_sets",
    "run",
    "sequence_loss",
    "set_auth",
    "sparse_column_with_vocabulary_file",
    "stack_bidirectional_dynamic_rnn",
    "toimage",
    "stack_bidirectional_rnn",
}


def name_of(path: Path) -> str:
    return ".".join(("moxing", *path.relative_to(SOURCE).with_suffix("").parts))


def sources() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if TEMPLATES not in path.parents)


def all_files() -> list[Path]:
    own = [path for path in TESTS.rglob("*.py") if TESTS / "scripts" not in path.parents]
    return [*sources(), *sorted(own)]


def from_root(path: Path) -> str:
    return path.relative_to(TESTS.parent).as_posix()


def has_logic(path: Path) -> bool:
    tree = ast.parse(path.read_text())
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in ast.walk(tree))


def mirror_of(path: Path) -> Path:
    """Where the tests of a module are: `a/_b.py` has `tests/a/test_b.py`."""
    return TESTS / path.relative_to(SOURCE).with_name(f"test_{path.stem.lstrip('_')}.py")


def test_every_module_with_logic_has_its_test_file():
    missing = {
        name_of(path)
        for path in sources()
        if path.stem not in ("__init__", "__main__", "_version")
        and SOURCE / "demo" not in path.parents
        and has_logic(path)
        and not mirror_of(path).exists()
    }
    assert not missing, "module src/moxing/a/b.py needs tests/a/test_b.py"


def test_files_are_short():
    long = {from_root(path) for path in all_files() if len(path.read_text().splitlines()) > MOST_LINES}
    assert not long, f"no file is longer than {MOST_LINES} lines"
    assert statistics.median(len(path.read_text().splitlines()) for path in sources()) < 150


def test_folders_are_small():
    full = {
        from_root(folder)
        for top in (SOURCE, TESTS)
        for folder in (top, *(path for path in top.rglob("*") if path.is_dir()))
        if len(list(folder.glob("*.py"))) > MOST_FILES
    }
    assert not full - CATALOGUES, f"no folder has more than {MOST_FILES} modules on one level"


def signatures(node: ast.AST, prefix: str):
    """Names of the functions in a module, with the parameters that each has besides self."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from signatures(child, f"{prefix}.{child.name}")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{child.name}"
            own = [one.arg for one in (*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs)]
            yield name, own[1:] if own[:1] in (["self"], ["cls"]) else own
            yield from signatures(child, name)
        else:
            yield from signatures(child, prefix)


def short_name(name: str) -> str:
    """A function without its module, a constructor with its class."""
    *_, owner, own = name.split(".")
    return f"{owner}.{own}" if own == "__init__" else own


def is_published_network(name: str, parameters: list[str]) -> bool:
    """Whether it builds a network of the zoo, whose options are those that were published with it."""
    return name.startswith("moxing.tensorflow.nets.") and "num_classes" in parameters


def wide_functions() -> set[str]:
    return {
        name
        for path in sources()
        for name, parameters in signatures(ast.parse(path.read_text()), name_of(path))
        if len(parameters) > MOST_PARAMETERS and not is_published_network(name, parameters)
    }


def test_functions_have_few_parameters():
    wide = wide_functions()
    original = {name for name in wide if short_name(name) in ORIGINAL_SIGNATURES}
    rule = f"no function has more than {MOST_PARAMETERS} parameters; pass a frozen dataclass"
    assert not wide - original, rule
