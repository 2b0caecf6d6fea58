"""Counts the files that a training step passes through: `python -m moxing.tools.walk`.

A small training on one device runs under a tracer: JPEG files, a network of the zoo, momentum, a `log_dir`. The walk is
what a reader does who follows the code from `mox.run` to the first applied gradient and reads every function once,
where it is first called. A *return* is a step back into a file that was left before. Properties and nested functions
are read where they are used; import hooks are not followed.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Walk:
    """The functions of a walk, in the order of their first call.

    Attributes:
      functions: file below the package, and name, of every function.
    """

    functions: Sequence[tuple[str, str]]

    @property
    def visits(self) -> list[str]:
        """The files in the order in which a reader opens them; a file appears again for every return to it.

        Example:
          >>> Walk([('a.py', 'f'), ('b.py', 'g'), ('b.py', 'h'), ('a.py', 'k')]).visits
          ['a.py', 'b.py', 'a.py']
        """
        files = [file for file, _ in self.functions]
        return [file for number, file in enumerate(files) if number == 0 or files[number - 1] != file]

    @property
    def files(self) -> list[str]:
        """The files, each once, in the order of the first visit."""
        return list(dict.fromkeys(self.visits))

    @property
    def returns(self) -> int:
        """How often a reader comes back to a file that was left before."""
        return len(self.visits) - len(self.files)

    def summary(self) -> str:
        """One line with the three counts.

        Example:
          >>> Walk([('a.py', 'f'), ('b.py', 'g'), ('a.py', 'h')]).summary()
          '2 files, 3 functions, 1 return'
        """
        returns = "1 return" if self.returns == 1 else f"{self.returns} returns"
        return f"{len(self.files)} files, {len(self.functions)} functions, {returns}"


class _Tracer:
    """Notes every function of the package when it is called for the first time, in whatever thread.

    Args:
      last: when this function returns, the walk ends.
    """

    def __init__(self, last: CodeType) -> None:
        self._last = last
        self._seen: dict[CodeType, tuple[str, str] | None] = {}
        self._ended = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and not self._ended and code not in self._seen and not _is_import(frame):
            self._seen[code] = _function(code)
        elif event == "return" and code is self._last:
            self._ended = True

    @property
    def walk(self) -> Walk:
        return Walk([function for function in self._seen.values() if function is not None])


def _is_import(frame: FrameType | None) -> bool:
    """True below an import: a reader does not follow import hooks."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _function(code: CodeType) -> tuple[str, str] | None:
    """File and name of a function that is read on its own."""
    path = Path(code.co_filename)
    if not path.is_relative_to(_PACKAGE) or path == Path(__file__):
        return None
    # Nested functions, lambdas and comprehensions are read with the function around them.
    if "<" in code.co_qualname or _is_property(path, code.co_qualname):
        return None
    return str(path.relative_to(_PACKAGE)), code.co_qualname


def _is_property(path: Path, name: str) -> bool:
    """True for properties, which read like attributes."""
    module = ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    owner: Any = sys.modules.get(module)
    *classes, last = name.split(".")
    for each in classes:
        owner = getattr(owner, each, None)
    return isinstance(inspect.getattr_static(owner, last, None), property)


@contextmanager
def _traced(last: CodeType) -> Iterator[_Tracer]:
    tracer = _Tracer(last)
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        yield tracer
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def walk_of_a_step(images: bool = True) -> Walk:
    """The walk from `mox.run` to the first applied gradient, on one device.

    Args:
      images: True: JPEG files and a network of the zoo; False: tensors and one dense layer, the executor alone.
    """
    import moxing.tensorflow as mox
    from moxing.tensorflow.executor.loop.step_loop import StepLoop

    with tempfile.TemporaryDirectory() as directory:
        input_fn, model_fn = _image_program(Path(directory, "images")) if images else _tensor_program()
        optimizer_fn = mox.get_optimizer_fn("momentum", learning_rate=0.01, momentum=0.9)
        with _traced(StepLoop.advance.__code__) as tracer:
            mox.run(
                input_fn=input_fn,
                model_fn=model_fn,
                optimizer_fn=optimizer_fn,
                run_mode=mox.ModeKeys.TRAIN,
                log_dir=str(Path(directory, "log")),
                batch_size=4,
                max_number_of_steps=1,
            )
    return tracer.walk


def _image_program(directory: Path) -> tuple[Any, Any]:
    import tensorflow.compat.v1 as tf
    from PIL import Image

    import moxing.tensorflow as mox

    for label, color in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
        Path(directory, label).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (48, 48), color).save(Path(directory, label, f"{number}.jpg"))

    def input_fn(mode: Any, **kwargs: Any) -> Any:
        metadata = mox.ImageClassificationRawMetadata(str(directory))
        augment = mox.get_data_augmentation_fn("resnet_v1_50", mode, output_height=32, output_width=32)
        return mox.ImageClassificationRawDataset(metadata, shuffle=True, augmentation_fn=augment).get(
            ["image", "label"]
        )

    def model_fn(inputs: Any, mode: Any, **kwargs: Any) -> Any:
        images, labels = inputs
        logits, _ = mox.get_model_fn("resnet_v1_18", run_mode=mode, num_classes=2, weight_decay=1e-4)(images)
        return mox.ModelSpec(loss=tf.losses.sparse_softmax_cross_entropy(labels, logits))

    return input_fn, model_fn


def _tensor_program() -> tuple[Any, Any]:
    import tensorflow.compat.v1 as tf

    import moxing.tensorflow as mox

    def input_fn(mode: Any, **kwargs: Any) -> Any:
        x = tf.random_uniform([4])
        return x, tf.reduce_sum(x)

    def model_fn(inputs: Any, mode: Any, **kwargs: Any) -> Any:
        x, y = inputs
        loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 1)[:, 0] - y))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    return input_fn, model_fn


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the walk: one line a visit, with the functions read there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensors", action="store_true", help="tensors and one dense layer instead of images")
    arguments = parser.parse_args(argv)
    sys.argv = sys.argv[:1]
    walk = walk_of_a_step(images=not arguments.tensors)
    for file, functions in groupby(walk.functions, key=lambda function: function[0]):
        print(f"{file}: {', '.join(name for _, name in functions)}")
    print(walk.summary())


if __name__ == "__main__":
    main()
