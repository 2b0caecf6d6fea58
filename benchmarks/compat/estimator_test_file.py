"""Run one test file of tensorflow-estimator on the installed package; started by estimator_suite.py.

    python benchmarks/compat/estimator_test_file.py CHECKOUT FILE RESULTS.xml [--loop off]

The file is executed as the main program, as its authors did, so it chooses its own runner and eager or graph mode.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

PACKAGE = "tensorflow_estimator"


class CheckoutFinder:
    """Finds the modules that only the checkout has. The last finder: the installed package comes first."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(f"{PACKAGE}."):
            return None
        file = self._checkout.joinpath(*name.split(".")).with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file) if file.exists() else None


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` returned until Python 3.10."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple | None


def getargspec(function: object) -> ArgSpec:
    """Return the arguments of a function: some tests ask for them by this old name."""
    return ArgSpec(*inspect.getfullargspec(function)[:4])


def use_old_optimizers(file: Path) -> None:
    """Gives one file the Keras optimizers that it was written for: its authors have not run it since Keras 2.11."""
    if file.name == "rnn_test.py":
        optimizers = importlib.import_module("tensorflow").keras.optimizers
        for name in ("Optimizer", "Adam"):
            setattr(optimizers, name, getattr(optimizers.legacy, name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--loop", choices=["on", "off"], default="on")
    arguments = parser.parse_args()
    if arguments.loop == "on":
        importlib.import_module("moxing.tensorflow.estimator")
    else:
        importlib.import_module("moxing.tf1.estimator.repair").load()
    # Tests that are for TensorFlow 1 only ask whether this was called.
    importlib.import_module("tensorflow").compat.v1.disable_v2_behavior()
    importlib.import_module("moxing.tf1.graph.v1_behavior").enable()
    use_old_optimizers(arguments.file)
    if not hasattr(inspect, "getargspec"):
        inspect.getargspec = getargspec
    sys.meta_path.append(CheckoutFinder(arguments.checkout))
    sys.argv = [str(arguments.file), f"--xml_output_file={arguments.results}"]
    runpy.run_path(str(arguments.file), run_name="__main__")


if __name__ == "__main__":
    main()
