"""The report on a data set, and the picture of its samples."""

import io
import json
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.raw import contact_sheet
from moxing.tensorflow.datasets.raw.contact_sheet import Sample, draw_samples, make_contact_sheet
from moxing.tensorflow.datasets.raw.inspection import ClassCount, Spread, inspect_dataset
from moxing.tensorflow.datasets.tfrecord.conversion import convert_image_folder
from moxing.tensorflow.preprocessing import get_data_augmentation_fn

#: One colour a class, so that a tile tells which class it is of.
COLOURS = {"blue": (10, 40, 230), "green": (20, 200, 30), "red": (240, 30, 20)}


def encoded(image, kind="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def textured(colour, size=(60, 40)):
    """A colour with a pattern in it."""
    pattern = np.arange(size[0] * size[1]).reshape(size[1], size[0], 1) * 7 % 20
    return Image.fromarray(np.clip(np.array(colour) + pattern - 10, 0, 255).astype(np.uint8))


def put(root, files):
    for name, content in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "data"
    for name, colour in COLOURS.items():
        put(root, {f"{name}/{i}.png": encoded(textured(colour, (60 + i, 40))) for i in range(4)})
    return root


@pytest.fixture
def bad_folder(folder):
    whole = encoded(textured((9, 9, 9), (200, 200)), "JPEG")
    put(folder, {
        "red/cut.jpg": whole[: len(whole) // 2], "red/empty.jpg": b"", "blue/page.png": b"<html>",
        "blue/notes.txt": b"", "green/anim.gif": encoded(textured((1, 2, 3)), "GIF"),
        "green/late header.jpg": whole[:2] + (b"\xff\xe1\xff\xff" + bytes(65533)) * 2 + whole[2:], "stray.jpg": whole,
    })  # fmt: skip
    return folder


def reasons(found, root):
    return {os.path.relpath(sample.file, root): sample.reason for sample in found.bad}


def test_a_good_folder(folder):
    found = inspect_dataset(folder)
    assert found.kind == "image folder" and not found.decoded
    assert found.classes == [ClassCount(i, name, 4) for i, name in enumerate(COLOURS)]
    assert (found.total, found.formats) == (12, {"PNG": 12})
    assert (found.width, found.height) == (Spread(60, 61, 63), Spread(40, 40, 40))
    assert not found.bad and not found.problems and not found.notes and not found.ignored


def test_what_cannot_be_used_is_named(bad_folder):
    found = inspect_dataset(bad_folder)
    assert reasons(found, bad_folder) == {
        "red/empty.jpg": "empty file",
        "blue/page.png": "not an image: begins with b'<html>'",
    }
    assert found.formats == {"PNG": 12, "JPEG": 2, "GIF": 1}
    assert found.ignored == {".txt": 1, "images beside the class folders": 1}
    full = inspect_dataset(bad_folder, full=True)
    assert set(reasons(full, bad_folder)) == {"red/cut.jpg", "red/empty.jpg", "blue/page.png"}
    assert "truncated" in reasons(full, bad_folder)["red/cut.jpg"]
    assert full.formats == {"PNG": 12, "JPEG": 1, "GIF": 1}


def test_too_many_pixels_are_bad_before_they_are_decoded(folder):
    FLAGS.set("max_image_pixels", 61 * 40)
    for full in (False, True):
        found = inspect_dataset(folder, full=full)
        assert {os.path.basename(sample.file) for sample in found.bad} == {"2.png", "3.png"}
        assert all("max_image_pixels=2440" in sample.reason for sample in found.bad)


def test_the_order_of_labels_txt(folder):
    (folder / "labels.txt").write_text("0: red\n1: green\n2: blue\n")
    assert [one.name for one in inspect_dataset(folder).classes] == ["red", "green", "blue"]


def test_what_training_refuses_is_reported_and_not_raised(folder):
    os.mkdir(folder / "empty")
    found = inspect_dataset(folder)
    assert ClassCount(1, "empty", 0) in found.classes
    assert found.problems and "no images in the class folders 'empty'" in found.problems[0]
    assert "Classes without a sample: empty." in found.notes
    os.rmdir(folder / "empty")
    (folder / "labels.txt").write_text("0: red\n1: green\n2: cyan\n")
    assert "labels without a folder: 'cyan'" in inspect_dataset(folder).problems[0]


def test_notes(folder, tmp_path):
    put(folder, {f"red/more{i}.png": encoded(textured(COLOURS["red"])) for i in range(20)})
    (note,) = inspect_dataset(folder).notes
    assert "red has 6 times as many samples as blue" in note
    put(tmp_path / "split", {f"{split}/{name}/0.png": encoded(textured((1, 2, 3)))
                             for split in ("train", "eval") for name in ("cat", "dog")})  # fmt: skip
    (note,) = inspect_dataset(tmp_path / "split").notes
    assert "All class folders have the folders cat, dog in them" in note


def test_what_is_no_data_set(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        inspect_dataset(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no images"):
        inspect_dataset(tmp_path)
    put(tmp_path, {"train.bin": b"x"})
    with pytest.raises(ValueError, match="no class folders.*train.bin.*give a pattern"):
        inspect_dataset(tmp_path)


@pytest.mark.parametrize("prefix", [None, "p"])
def test_records_are_reported_as_the_folder_was(tmp_path, folder, prefix):
    convert_image_folder(folder, tmp_path / "records", {"train": 0.7, "eval": 0.3}, prefix=prefix)
    found, source = inspect_dataset(tmp_path / "records"), inspect_dataset(folder)
    assert found.kind == "TFRecord files"
    for name in ("classes", "formats", "width", "height", "bad", "notes"):
        assert getattr(found, name) == getattr(source, name)
    part = inspect_dataset(tmp_path / "records", pattern="*eval*", full=True)
    assert part.decoded and part.total == 3


def test_damaged_and_strange_records(tmp_path, folder):
    convert_image_folder(folder, tmp_path / "records")
    path = tmp_path / "records" / "train-00000-of-00001"
    content = bytearray(path.read_bytes())
    content[60] ^= 0xFF  # in the data of the first record
    path.write_bytes(content)

    def features(**values):
        return {
            "image/" + name.replace("_", "/"): tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            if isinstance(value, bytes)
            else tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
            for name, value in values.items()
        }

    with tf.python_io.TFRecordWriter(str(tmp_path / "records" / "more.tfrecord")) as writer:
        for content in (
            features(encoded=b"no image", class_label=1),
            features(encoded=encoded(textured((1, 2, 3)), "JPEG"), class_label=8),
            features(encoded=b"x"),
        ):
            writer.write(tf.train.Example(features=tf.train.Features(feature=content)).SerializeToString())
        writer.write(b"\xff not an example")
    found = inspect_dataset(tmp_path / "records")
    assert found.total == 16 and found.formats == {"PNG": 11, "JPEG": 1}
    text = [sample.reason for sample in sorted(found.bad, key=lambda sample: (sample.file, sample.offset))]
    assert ["not an image" in text[0], "has no 'image/class/label'" in text[1]] == [True, True]
    assert [text[2], "checksum" in text[3]] == ["not a tf.train.Example", True]
    assert found.classes[-2:] == [ClassCount(8, "", 1), ClassCount(None, "", 3)]
    assert "Labels that labels.txt does not name: 8." in found.notes


def test_the_report_goes_into_json(bad_folder):
    report = json.loads(json.dumps(inspect_dataset(bad_folder).as_dict()))
    assert report["total"] == 17
    assert report["classes"][0] == {"label": 0, "name": "blue", "samples": 5}
    assert report["bad"][0]["reason"] and report["width"]["min"] == 60


def tiles(sheet, edge, count):
    """The tiles of a sheet, cut out where they must be."""
    columns = (sheet.width - 6) // (edge + 6)
    for number in range(count):
        left, top = 6 + number % columns * (edge + 6), 6 + number // columns * (edge + 24)
        yield np.asarray(sheet.crop((left, top, left + edge, top + edge)), np.float64)


def nearest_colour(tile):
    inner = tile[tile.shape[0] * 3 // 8 : tile.shape[0] * 5 // 8, tile.shape[1] * 3 // 8 : tile.shape[1] * 5 // 8]
    mean = inner.mean(axis=(0, 1))
    return min(COLOURS, key=lambda name: np.abs(mean - COLOURS[name]).sum()), mean


@pytest.mark.parametrize("as_records", [False, True])
def test_the_sheet_shows_every_image_once(tmp_path, folder, as_records):
    if as_records:
        convert_image_folder(folder, tmp_path / "records")
    path = tmp_path / "sheet.png"
    make_contact_sheet(tmp_path / "records" if as_records else folder, size=100).save(path)
    with Image.open(path) as sheet:
        assert sheet.format == "PNG"
        assert sheet.size == (5 * 106 + 6, 3 * 124 + 6)
        shown = [nearest_colour(tile)[0] for tile in tiles(sheet, 100, 12)]
        assert all(tile.std() > 5 for tile in tiles(sheet, 100, 12))
    assert sorted(shown) == sorted(list(COLOURS) * 4)
    assert shown != sorted(shown)


def test_images_that_are_only_decoded_keep_their_pixels(folder):
    sheet = np.asarray(make_contact_sheet(folder, samples=12, size=130))
    # They are doubled, to fill the tile.
    for name in COLOURS:
        with Image.open(folder / name / "3.png") as image:
            doubled = np.asarray(image.convert("RGB")).repeat(2, 0).repeat(2, 1)
        windows = np.lib.stride_tricks.sliding_window_view(sheet, (1, doubled.shape[1], 3))[:, :, 0, 0]
        assert (windows == doubled[10]).all(axis=(-1, -2)).any()


@pytest.mark.parametrize("network", ["resnet_v1_50", "inception_v3", "lenet", "pvanet"])
def test_augmented_tiles_have_the_colours_of_the_images(folder, network):
    size = 48
    sheet = make_contact_sheet(folder, augmentation=network, size=size, samples=12)
    edge = 96
    seen = []
    for tile in tiles(sheet, edge, 12):
        assert tile.std(axis=(0, 1)).max() > 0.5
        name, mean = nearest_colour(tile)
        seen.append(name)
        # Inception changes colours, by up to 32 of 255 in brightness.
        if network != "inception_v3":
            np.testing.assert_allclose(mean, COLOURS[name], atol=8)
    assert sorted(seen) == sorted(list(COLOURS) * 4)


def test_per_image_scaling_is_spread_from_black_to_white(folder):
    sheet = make_contact_sheet(folder, augmentation="cifarnet", samples=12)
    for tile in tiles(sheet, 96, 12):
        assert tile.min() == 0 and tile.max() == 255


def test_the_network_decides_the_size(folder):
    sheet = make_contact_sheet(folder, augmentation="resnet_v1_50", samples=1)
    assert sheet.size == (224 + 12, 224 + 30)


def test_a_seed_decides_what_is_shown(folder):
    first, again, other = (
        np.asarray(make_contact_sheet(folder, augmentation="vgg_16", size=48, samples=6, seed=seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_it_is_what_training_gets(folder, monkeypatch):
    """The tile is the sample of a data set with the same seed, brought back to 0 to 255."""
    from moxing.tensorflow.datasets.raw.raw_dataset import ImageClassificationRawDataset
    from moxing.tensorflow.datasets.raw.raw_metadata import ImageClassificationRawMetadata

    drawn = []
    monkeypatch.setattr(contact_sheet, "draw_samples", lambda samples, tile: drawn.extend(samples))
    make_contact_sheet(folder, augmentation="resnet_v1_50", samples=5, seed=3)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        dataset = ImageClassificationRawDataset(
            ImageClassificationRawMetadata(folder), augmentation_fn=get_data_augmentation_fn("resnet_v1_50", "TRAIN")
        )
        tensors = dataset.get(["image", "label"])
        for sample in drawn:
            image, label = session.run(tensors)
            assert label == sample.label
            np.testing.assert_allclose(sample.image, image + [123.68, 116.78, 103.94], atol=0.51)


def test_many_bad_images_do_not_stop_the_sheet(bad_folder):
    put(bad_folder, {f"red/bad{i}.jpg": b"bad" for i in range(30)})
    sheet = make_contact_sheet(bad_folder, size=100, samples=100)
    assert sheet.width == 5 * 106 + 6  # 14 tiles
    assert FLAGS.get("max_bad_samples") == "0.1%"


def test_nothing_to_show(tmp_path):
    put(tmp_path, {"a/0.jpg": b"bad"})
    with pytest.raises(ValueError, match="no image that can be decoded"):
        make_contact_sheet(tmp_path)


def test_captions_that_are_long_or_strange():
    image = np.zeros([100, 100, 3], np.uint8)
    names = ["", "a very long name of a class that does not fit", "深い\nクラス", "caf\udce9"]
    sheet = draw_samples([Sample(image, i, name) for i, name in enumerate(names)], 100)
    captions = np.asarray(sheet)[106:124]
    assert sheet.size == (3 * 106 + 6, 2 * 124 + 6)
    for left in (6, 112, 218):
        assert (captions[:, left : left + 100] > 200).any()
    # The long one stays in its column.
    assert not (captions[:, 212:218] > 100).any()


def test_grey_images_are_shown():
    sheet = draw_samples([Sample(np.full([100, 100, 1], 77, np.uint8), 0, "grey")], 100)
    assert sheet.getpixel((50, 50)) == (77, 77, 77)
