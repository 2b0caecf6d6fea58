"""A folder as the world has it: every format, every damage; and a run that survives it, or stops and says why."""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.bad_samples import BadSample, TooManyBadSamplesError


def photo(width=48, height=36) -> Image.Image:
    """Something with structure, so that a JPEG of it is long enough to be cut."""
    rows, columns = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([rows * 5, columns * 4, (rows + columns) * 2], axis=2).astype(np.uint8))


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format=kind, **options)
    return stream.getvalue()


def huge_png() -> bytes:
    """A PNG whose header, with a right checksum, claims 60,000 x 60,000 pixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    small = encoded(photo(), "PNG")
    return small[:8] + struct.pack(">I", len(header)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + small[33:]


def good_files() -> dict[str, bytes]:
    grey16 = Image.fromarray((np.arange(48 * 36, dtype=np.uint16) * 37).reshape(36, 48))
    return {
        "plain.jpg": encoded(photo(), "JPEG"),
        "UPPER.JPEG": encoded(photo(), "JPEG"),
        "no_extension": encoded(photo(), "JPEG"),
        "progressive.jpg": encoded(photo(), "JPEG", progressive=True),
        "cmyk.jpg": encoded(photo().convert("CMYK"), "JPEG"),
        "grey.jpg": encoded(photo().convert("L"), "JPEG"),
        "png named.jpg": encoded(photo(), "PNG"),
        "sixteen bit.png": encoded(grey16, "PNG"),
        "palette.png": encoded(photo().convert("P"), "PNG"),
        "alpha.png": encoded(photo().convert("RGBA"), "PNG"),
        "动图.gif": encoded(photo(), "GIF"),
        "bitmap.bmp": encoded(photo(), "BMP"),
        "🌻.webp": encoded(photo(), "WEBP"),
    }


def bad_files() -> dict[str, tuple[bytes, str]]:
    """Content, and a word that the report must have."""
    jpeg = encoded(photo(), "JPEG")
    return {
        "empty.jpg": (b"", "empty"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "truncated"),
        "cut.png": (encoded(photo(), "PNG")[:-40], "truncated"),
        "error page.jpg": (b"<html><body>404</body></html>", "not an image"),
        "noise.png": (bytes(range(256)) * 4, "not an image"),
        "huge.png": (huge_png(), "max_image_pixels"),
    }


def make_folder(base: Path, bad: bool = True) -> Path:
    for label in ("first", "第二"):
        (base / label / "nested").mkdir(parents=True)
        for index, (name, content) in enumerate(good_files().items()):
            (base / label / ("nested" if index % 2 else ".") / name).write_bytes(content)
        (base / label / ".hidden.jpg").write_bytes(b"not looked at")
    for name, (content, _) in bad_files().items() if bad else ():
        (base / "first" / name).write_bytes(content)
    (base / "labels.txt").write_bytes("\ufeff0: first\r\n\r\n1: 第二\r\n".encode())
    return base


def run(base: Path, mode=mox.ModeKeys.TRAIN, steps=1000, batch_size=4, epochs=2, seen=None, **kwargs):
    """Runs over the folder; `seen` collects the names of the samples, step by step."""
    meta = mox.ImageClassificationRawMetadata(str(base))

    def input_fn(mode):
        dataset = mox.ImageClassificationRawDataset(
            meta, num_epochs=epochs, augmentation_fn=mox.get_data_augmentation_fn("cifarnet", mode)
        )
        return dataset.get(["image", "label", "image_name"])

    def model_fn(inputs, mode):
        images, _, names = inputs
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        mean = tf.reduce_mean(images)
        return mox.ModelSpec(
            loss=tf.square(weight - mean), log_info={"mean": mean}, output_info={"names": names, "mean": mean}
        )

    def output_fn(outputs):
        seen.extend((tuple(output["names"]), float(output["mean"])) for output in outputs)

    return mox.run(
        input_fn=input_fn, model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.01),
        run_mode=mode, batch_size=batch_size, max_number_of_steps=steps,
        output_fn=None if seen is None else output_fn, output_every_n_steps=0 if seen is None else 1, **kwargs,
    )  # fmt: skip


def check_report(log_dir: Path, bad) -> None:
    wanted = bad_files()
    lines = [json.loads(line) for line in (log_dir / "bad_samples.jsonl").read_text().splitlines()]
    assert sorted(Path(line["file"]).name for line in lines) == sorted(wanted)
    for line in lines:
        assert wanted[Path(line["file"]).name][1] in line["reason"], line
        assert line["offset"] is None
    assert {(sample.file, sample.reason) for sample in bad} == {(line["file"], line["reason"]) for line in lines}


@pytest.mark.slow
def test_every_good_file_is_used_and_every_bad_one_is_reported_once(tmp_path):
    base, seen = make_folder(tmp_path / "data"), []
    mox.set_flag("max_bad_samples", "10")
    result = run(base, seen=seen, log_dir=str(tmp_path / "log"))
    names = [name.decode() for names, _ in seen for name in names]
    assert sorted(names) == sorted([*good_files()] * 4)  # two classes, two epochs
    assert result.samples == len(names)
    check_report(tmp_path / "log", result.bad_samples)


@pytest.mark.slow
def test_over_the_budget_the_run_stops_with_the_list_and_its_work_is_kept(tmp_path):
    base = make_folder(tmp_path / "data")
    mox.set_flag("max_bad_samples", "3")
    with pytest.raises(TooManyBadSamplesError) as caught:
        run(base, log_dir=str(tmp_path / "log"), batch_size=1)
    text = str(caught.value)
    assert "4 bad samples" in text and "--max_bad_samples=3 allows 3" in text
    lines = (tmp_path / "log" / "bad_samples.jsonl").read_text().splitlines()
    assert len(lines) == 4
    for line in lines:
        assert json.loads(line)["file"] in text
    assert caught.value.__cause__ is None
    reached = tf.train.load_checkpoint(str(tmp_path / "log")).get_tensor("global_step")
    mox.set_flag("max_bad_samples", "10")
    result = run(base, log_dir=str(tmp_path / "log"), batch_size=1)
    # It goes on behind the bad sample: over all, every good sample of both epochs made one step.
    assert 0 < reached < result.global_step == 2 * 2 * len(good_files())
    check_report(tmp_path / "log", _written(tmp_path / "log"))


def _written(log_dir: Path):
    return [BadSample(**json.loads(line)) for line in (log_dir / "bad_samples.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_the_default_budget_is_one_in_a_thousand_and_at_least_one(tmp_path):
    base = make_folder(tmp_path / "data", bad=False)
    (base / "first" / "empty.jpg").write_bytes(b"")
    assert len(run(base).bad_samples) == 1
    (base / "first" / "also empty.jpg").write_bytes(b"")
    with pytest.raises(TooManyBadSamplesError, match="2 bad samples"):
        run(base)


@pytest.mark.slow
def test_evaluation_reports_what_it_left_out(tmp_path, caplog):
    base = make_folder(tmp_path / "data")
    mox.set_flag("max_bad_samples", "10")
    run(base, log_dir=str(tmp_path / "log"), steps=1)
    (tmp_path / "log" / "bad_samples.jsonl").unlink()
    seen = []
    for mode, more in ((mox.ModeKeys.EVAL, {}), (mox.ModeKeys.PREDICT, {"seen": seen})):
        caplog.clear()
        with caplog.at_level("INFO", logger="tensorflow"):
            result = run(base, mode, epochs=1, checkpoint_path=str(tmp_path / "log"), **more)
        assert result.samples == 2 * len(good_files())
        assert len(result.bad_samples) == len(bad_files())
        assert "Skipped 6 bad samples" in caplog.text
        for name in bad_files():
            assert name in caplog.text


@pytest.mark.slow
def test_resume_is_exact_with_bad_samples_among_the_data(tmp_path):
    base = make_folder(tmp_path / "data")
    mox.set_flag("max_bad_samples", "10")
    run(base, log_dir=str(tmp_path / "whole"), steps=1, epochs=None)
    (tmp_path / "parts").mkdir()
    for path in (tmp_path / "whole").iterdir():
        (tmp_path / "parts" / path.name).write_bytes(path.read_bytes())
    whole, parts = [], []
    run(base, log_dir=str(tmp_path / "whole"), steps=40, epochs=None, seen=whole)
    for steps in (9, 10, 23, 40):
        run(base, log_dir=str(tmp_path / "parts"), steps=steps, epochs=None, seen=parts)
    differing = [index for index, pair in enumerate(zip(parts, whole, strict=True)) if pair[0] != pair[1]]
    assert differing == [], (parts[differing[0]], whole[differing[0]])


def test_a_folder_of_nothing_but_bad_files_stops_at_once(tmp_path):
    (tmp_path / "data" / "a").mkdir(parents=True)
    for number in range(200):
        (tmp_path / "data" / "a" / f"{number}.jpg").write_bytes(b"")
    with pytest.raises(TooManyBadSamplesError, match="2 bad samples among 2"):
        run(tmp_path / "data", epochs=None)


def test_a_bad_value_of_the_flag_is_named(tmp_path):
    base = make_folder(tmp_path / "data")
    mox.set_flag("max_bad_samples", "many")
    with pytest.raises(ValueError, match="--max_bad_samples='many'"):
        run(base)


def test_pixel_limit_is_a_flag(tmp_path):
    base = make_folder(tmp_path / "data", bad=False)
    (base / "first" / "larger.png").write_bytes(encoded(photo(64, 48), "PNG"))
    mox.set_flag("max_image_pixels", 48 * 36)
    (bad,) = run(base).bad_samples
    assert "larger.png" in bad.file
    assert "64x48" in bad.reason and "1728" in bad.reason
