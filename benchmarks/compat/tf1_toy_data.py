"""Toy data in the formats that the programs of `programs.toml` read, and scripts of notebooks."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

WORDS = "the a cat dog bird sees likes hears red green blue small big house tree river and or"
CNEWS = ["体育", "财经", "房产", "家居", "教育", "科技", "时尚", "时政", "游戏", "娱乐"]


def write(kind: str, path: Path) -> None:
    """Writes toy data.

    Args:
      kind: a key of `KINDS`.
      path: the file or directory to write.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...   write('text', Path(folder, 'input.txt'))
      ...   Path(folder, 'input.txt').stat().st_size > 1000
      True
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](path)


@cache
def digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns images like those of MNIST: ten fixed patterns, of different brightness."""
    patterns = np.random.RandomState(0).rand(10, 7, 7) > 0.6
    source = np.random.RandomState(seed)
    labels = source.randint(0, 10, count).astype(np.uint8)
    images = np.kron(patterns[labels], np.ones((1, 3, 3)))[:, :20, :20] * 255
    images = np.pad(images, ((0, 0), (4, 4), (4, 4))) * source.uniform(0.5, 1.0, (count, 1, 1))
    # Some labels are wrong: programs show images that they get wrong.
    wrong = source.rand(count) < 0.03
    return images.astype(np.uint8), np.where(wrong, (labels + 1) % 10, labels).astype(np.uint8)


def mnist(folder: Path, train: int = 7000, test: int = 1000, packed: bool = True) -> None:
    """Writes the four IDX files of MNIST."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", train, 1), ("t10k", test, 2)):
        images, labels = digits(count, seed)
        files = {
            f"{name}-images-idx3-ubyte": struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes(),
            f"{name}-labels-idx1-ubyte": struct.pack(">II", 2049, count) + labels.tobytes(),
        }
        for file, content in files.items():
            if packed:
                (folder / f"{file}.gz").write_bytes(gzip.compress(content, 1))
            else:
                (folder / file).write_bytes(content)


def full_mnist(folder: Path) -> None:
    """Writes MNIST with as many images as the original, for programs that count on it."""
    mnist(folder, 60000, 10000)


def unpacked_mnist(folder: Path) -> None:
    """The same without gzip."""
    mnist(folder, 60000, 10000, packed=False)


def colored(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns CIFAR-10 images as bytes of shape [count, 3072]: a color for each class."""
    source = np.random.RandomState(seed)
    labels = source.randint(0, 10, count)
    colors = np.random.RandomState(0).randint(30, 225, (10, 3))
    images = np.repeat(colors[labels], 1024, axis=1) + source.randint(-20, 20, (count, 3072))
    return images.astype(np.uint8), labels


def cifar10(folder: Path) -> None:
    """Writes the Python version of CIFAR-10, and an archive that tells programs not to fetch it."""
    batches = folder / "cifar-10-batches-py"
    batches.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        images, labels = colored(10000, number)
        content = {b"data": images, b"labels": labels.tolist(), "data": images, "labels": labels.tolist()}
        (batches / name).write_bytes(pickle.dumps(content, protocol=2))
    (folder / "cifar-10-python.tar.gz").touch()


def sentence(source: random.Random) -> str:
    return " ".join(source.choice(WORDS.split()) for _ in range(source.randint(4, 9)))


def text(path: Path) -> None:
    """Writes lines of words."""
    source = random.Random(5)
    path.write_text("".join(f"{sentence(source)}.\n" for _ in range(3000)))


def glove(path: Path) -> None:
    """Writes vectors of 300 numbers for the words of ../test.txt, as GloVe has them."""
    words = {line.split()[0].lower() for line in (path.parent.parent / "test.txt").read_text().splitlines() if line}
    source = random.Random(5)
    path.write_text(
        "".join(f"{w} {' '.join(f'{source.gauss(0, 1):.3f}' for _ in range(300))}\n" for w in sorted(words))
    )


def cnews(folder: Path) -> None:
    """Writes texts of ten classes, a line each: class, tab, text."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(5)
    for split, count in (("train", 600), ("val", 100), ("test", 100)):
        lines = []
        for number in range(count):
            label = number % len(CNEWS)
            letters = "".join(chr(0x4E00 + label * 40 + source.randrange(40)) for _ in range(80))
            lines.append(f"{CNEWS[label]}\t{letters}\n")
        (folder / f"cnews.{split}.txt").write_text("".join(lines))


def complaints(path: Path) -> None:
    """Writes a zipped CSV file of texts with the product that they are about."""
    source = random.Random(5)
    lines = ["product,consumer_complaint_narrative\n"]
    for number in range(10000):
        product = ("Mortgage", "Credit card", "Student loan")[number % 3]
        lines.append(f"{product},{product.split()[0].lower()} {sentence(source)}\n")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("complaints.csv", "".join(lines))


def dialogs(path: Path) -> None:
    """Writes conversations, a line for each turn."""
    source = random.Random(5)
    talks = ["\n".join(f"{sentence(source)} ." for _ in range(8)) for _ in range(100)]
    path.write_text("\n===\n".join(talks) + "\n")


def images(folder: Path) -> None:
    """Writes JPEG files in one directory per class."""
    from PIL import Image

    source = random.Random(5)
    for label, color in enumerate(((220, 40, 40), (40, 40, 220))):
        (folder / f"class_{label}").mkdir(parents=True, exist_ok=True)
        for number in range(40):
            shade = tuple(min(255, max(0, part + source.randint(-30, 30))) for part in color)
            Image.new("RGB", (80, 70), shade).save(folder / f"class_{label}" / f"{number}.jpg")


def nmt(folder: Path) -> None:
    """Copies the hundred sentence pairs of the repository as training, development and test data."""
    folder.mkdir(parents=True, exist_ok=True)
    given = folder.parent / "nmt" / "testdata"
    for language in ("vi", "en"):
        for name in ("train", "dev", "test"):
            shutil.copy(given / f"iwslt15.tst2013.100.{language}", folder / f"{name}.{language}")
        shutil.copy(given / f"iwslt15.vocab.100.{language}", folder / f"vocab.{language}")


def keras_images(folder: Path) -> None:
    """Fashion MNIST where Keras keeps it."""
    mnist(folder / "datasets" / "fashion-mnist", 2000, 500)


KINDS: dict[str, Callable[[Path], Any]] = {
    "mnist": mnist,
    "full_mnist": full_mnist,
    "unpacked_mnist": unpacked_mnist,
    "cifar10": cifar10,
    "text": text,
    "glove": glove,
    "cnews": cnews,
    "complaints": complaints,
    "dialogs": dialogs,
    "images": images,
    "nmt": nmt,
    "keras_images": keras_images,
    "directory": lambda path: path.mkdir(parents=True, exist_ok=True),
}


def notebook_to_script(path: Path) -> str:
    """Writes the code cells of a notebook as a script, without the commands of IPython. Returns its name."""
    cells = json.loads(path.read_text())["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
    script = path.with_suffix(".py")
    # In place of a command, so that the block that it is in is not empty.
    empty = [line[: len(line) - len(line.lstrip())] + "pass" for line in lines]
    is_command = [line.lstrip().startswith(("%", "!", "?")) or line.rstrip().endswith("?") for line in lines]
    kept = [other if command else line for line, other, command in zip(lines, empty, is_command, strict=True)]
    future = [line for line in kept if line.startswith("from __future__")]
    script.write_text("\n".join([*future, *(line for line in kept if line not in future)]) + "\n")
    return script.name
