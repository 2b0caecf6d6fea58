"""A contact sheet shows samples as training sees them."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from colour_folders import COLOURS
from PIL import Image
from tool_images import write_files

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.tools import contact_sheet
from moxing.tensorflow.datasets.tools.contact_sheet import Sample, draw_samples, make_contact_sheet
from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
from moxing.tensorflow.preprocessing import get_data_augmentation_fn


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


@pytest.mark.slow
def test_a_seed_decides_what_is_shown(folder):
    first, again, other = (
        np.asarray(make_contact_sheet(folder, augmentation="vgg_16", size=48, samples=6, seed=seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.slow
def test_it_is_what_training_gets(folder, monkeypatch):
    """The tile is the sample of a dataset with the same seed, brought back to 0 to 255."""
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
    write_files(bad_folder, {f"red/bad{i}.jpg": b"bad" for i in range(30)})
    sheet = make_contact_sheet(bad_folder, size=100, samples=100)
    assert sheet.width == 5 * 106 + 6  # 14 tiles
    assert FLAGS.get("max_bad_samples") == "0.1%"


def test_nothing_to_show(tmp_path):
    write_files(tmp_path, {"a/0.jpg": b"bad"})
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
