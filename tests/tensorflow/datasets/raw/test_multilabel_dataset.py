"""Images with several labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from image_folders import texts, write_image
from raw_running import run

import moxing.tensorflow as mox


def write_multilabel(root: Path, labels: dict[str, str | None], listed: str | None = None) -> Path:
    (root / "labels").mkdir(parents=True)
    for number, (name, text) in enumerate(labels.items()):
        write_image(root / "images" / name, number)
        if text is not None:
            (root / "labels" / f"{name}.txt").write_text(text)
    if listed is not None:
        (root / "labels.txt").write_text(listed)
    return root


def run_multilabel(root: Path, *names, **options):
    metadata = mox.MultilabelClassificationRawMetadata(str(root))
    return run(metadata, *names, data_class=mox.MultilabelClassificationRawDataset, **options)


@pytest.mark.parametrize("label_sep", ["\n", " ", ", ", "|"])
def test_label_vectors(tmp_path, label_sep):
    sets = {"0.png": ["cat", "elk"], "1.png": ["dog"], "2.png": [], "3.png": ["elk", "dog", "cat"]}
    texts_of = {name: label_sep.join(labels) for name, labels in sets.items()}
    root = write_multilabel(tmp_path / "data", texts_of, "0: cat\n1: dog\n2: elk\n")
    samples = run_multilabel(root, "image_name", "label", "label_desc", "image", label_sep=label_sep)
    assert len(samples) == 4
    for name, label, text, image in samples:
        wanted = sets[name.decode()]
        assert label.dtype == np.float32
        assert label.tolist() == [float(one in wanted) for one in ("cat", "dog", "elk")]
        assert text.decode() == label_sep.join(wanted)
        assert image.shape == (6, 8, 3)


def test_images_without_a_label_file(tmp_path):
    root = write_multilabel(tmp_path / "data", {"0.png": "cat", "1.png": None, "2.png": "dog", "3.png": None})
    with pytest.raises(ValueError, match="(?s)2 images have no label file.*1.png.*skip_label_not_found=True"):
        run_multilabel(root, "image")
    samples = run_multilabel(root, "image_name", "label", skip_label_not_found=True, num_epochs=2)
    assert texts(name for name, _ in samples) == ["0.png", "2.png"] * 2
    assert [label.tolist() for _, label in samples] == [[1, 0], [0, 1]] * 2


def test_unknown_label_names_and_separators(tmp_path):
    root = write_multilabel(tmp_path / "data", {"0.png": "cat dog", "1.png": "cat"}, "0: cat\n1: dog\n")
    with pytest.raises(ValueError, match=r"(?s)0.png.txt.*'cat dog' is not one of the 2 classes.*label_sep='\\n'.*' '"):
        run_multilabel(root, "label")
    for wrong in ("", None):
        with pytest.raises(ValueError, match=f"label_sep={wrong!r}"):
            run_multilabel(root, "label", label_sep=wrong)


def test_batches_of_several_labels(tmp_path):
    root = write_multilabel(tmp_path / "data", {f"{number}.png": "a\nb" for number in range(5)})
    batches = run_multilabel(root, "label", "image", batch_size=2, image_size=4)
    assert [(label.shape, image.shape) for label, image in batches] == [
        ((2, 2), (2, 4, 4, 3)), ((2, 2), (2, 4, 4, 3)), ((1, 2), (1, 4, 4, 3)),
    ]  # fmt: skip
