"""Continue a training of TensorFlow 2.15 here, and one of ours there, and compare the variables.

    python -m venv OLD && OLD/bin/pip install tensorflow==2.15.1
    python benchmarks/compat/estimator_checkpoints.py --old_python OLD/bin/python [--write]

The program is `tests/tensorflow/estimator/data/train_dense.py`. Each of the four trainings has 10 steps in one process
and 10 in another. The exit code is 1 if the variables of two trainings that began alike differ by more than a rounding
error. `--write` stores the checkpoint of 2.15 at step 10, and its variables at step 20, as data of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

DATA = Path(__file__).resolve().parent.parent.parent / "tests" / "tensorflow" / "estimator" / "data"
PROGRAM = DATA / "train_dense.py"
OURS = [sys.executable, "-m", "moxing", "run"]
#: About ten units in the last place of a float32.
TOLERANCE = 1e-6


def train(python: list[str], model_dir: Path, steps: int) -> None:
    """Run the program with an interpreter."""
    # The Keras of 2.15 knows this switch, and looks for a package that is not there.
    environment = {name: value for name, value in os.environ.items() if name != "TF_USE_LEGACY_KERAS"}
    command = [*python, str(PROGRAM), str(model_dir), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(python)} {PROGRAM.name} ended with {done.returncode}:\n{done.stderr[-3000:]}")


def variables(model_dir: Path) -> dict[str, np.ndarray]:
    """Return the variables of the newest checkpoint."""
    reader = tf.train.load_checkpoint(str(model_dir))
    return {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}


def difference(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """Return the largest difference between variables, which must have the same names and shapes."""
    shapes = [{name: value.shape for name, value in found.items()} for found in (one, other)]
    if shapes[0] != shapes[1]:
        raise SystemExit(f"The variables differ: {shapes[0]} and {shapes[1]}")
    return max(float(np.max(np.abs(one[name].astype(np.float64) - other[name]))) for name in one)


def keep(model_dir: Path, after: dict[str, np.ndarray]) -> None:
    """Store a checkpoint and the variables that 2.15 has 10 steps later."""
    kept = DATA / "model_of_215"
    shutil.rmtree(kept, ignore_errors=True)
    left_out = shutil.ignore_patterns("*.meta", "graph.pbtxt", "events.*", "model.ckpt-0*")
    shutil.copytree(model_dir, kept, ignore=left_out)
    # The first lines name the last checkpoint; the others name one that is left out.
    (kept / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-10"\nall_model_checkpoint_paths: "model.ckpt-10"\n'
    )
    values = {name: value.tolist() for name, value in after.items()}
    (DATA / "step_20_of_215.json").write_text(json.dumps(values, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old_python", required=True, help="an interpreter with TensorFlow 2.15")
    parser.add_argument("--write", action="store_true", help="store the checkpoint of 2.15 as data of the tests")
    options = parser.parse_args()
    if shutil.which(options.old_python) is None:
        raise SystemExit(f"--old_python {options.old_python}: not found. Give the path of a Python interpreter")
    pythons = {"2.15": [options.old_python], "ours": OURS}
    results: dict[str, dict[str, np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for begins, first in pythons.items():
            began = Path(folder, begins)
            train(first, began, 10)
            for ends, second in pythons.items():
                continued = Path(shutil.copytree(began, Path(folder, f"{begins} {ends}")))
                train(second, continued, 20)
                results[f"{begins}, then {ends}"] = variables(continued)
        if options.write:
            keep(Path(folder, "2.15"), results["2.15, then 2.15"])
    largest = 0.0
    for begins in pythons:
        # Each from the same checkpoint: the two draw other first weights from a seed.
        one, other = (results[f"{begins}, then {ends}"] for ends in pythons)
        found = difference(one, other)
        largest = max(largest, found)
        print(f"begun by {begins}, step {one['global_step']}: continued by both, largest difference {found:.3g}")
    if largest > TOLERANCE:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
