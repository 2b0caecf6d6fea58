"""Images with labels from TFRecord files: features, sizes, augmentation, the cache, and the form of 2017."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_record_datasets import IMAGES, images, write_images
from record_writing import column, encode, example, flip_byte, noise, rows, run_seeing, slim_example, write

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.bad_samples import TooManyBadSamplesError
from moxing.tensorflow.datasets.tfrecord import tfrecord_image


class TestFeatures:
    def test_all_four(self, tmp_path):
        write_images(tmp_path)
        names = ["image", "label", "label_desc", "image_name"]
        with tf.Graph().as_default():
            dataset = images(tmp_path)
            tensors = dataset.get(names)
            assert [tensor.dtype for tensor in tensors] == [tf.uint8, tf.int64, tf.string, tf.string]
            assert tensors[0].shape.as_list() == [None, None, 3] and tensors[1].shape.as_list() == []
            got = rows(dataset, names)
        assert [row[1:] for row in got] == [(i % 3, b"text %d" % (i % 3), b"%d.png" % i) for i in range(6)]
        assert all(np.array_equal(row[0], image) for row, image in zip(got, IMAGES, strict=True))

    def test_names_of_the_label_file_come_first(self, tmp_path):
        write_images(tmp_path)
        (tmp_path / "labels.txt").write_text("0: daisy\n2: rose\n")
        with tf.Graph().as_default():
            assert column(images(tmp_path), "label_desc") == [b"daisy", b"", b"rose"] * 2

    def test_a_label_beyond_the_label_file_has_no_name(self, tmp_path):
        write_images(tmp_path)
        (tmp_path / "labels.txt").write_text("0: daisy\n1: rose\n")
        with tf.Graph().as_default():
            assert column(images(tmp_path), "label_desc") == [b"daisy", b"rose", b""] * 2

    def test_records_without_names(self, tmp_path):
        write(tmp_path / "a.tfrecord", [slim_example(IMAGES[0], 1)])
        with tf.Graph().as_default():
            assert rows(images(tmp_path), ["label", "label_desc", "image_name"]) == [(1, b"", b"")]

    def test_formats_side_by_side(self, tmp_path):
        """Grey ones and others become three channels, as in image folders."""
        kinds = ["png", "jpg", "bmp", "gif"]
        write(tmp_path / "a.tfrecord", [slim_example(noise(8, 9), i, kind) for i, kind in enumerate(kinds)])
        write(tmp_path / "b.tfrecord", [slim_example(noise(8, 9, 1), 4, "png")])
        with tf.Graph().as_default():
            got = rows(images(tmp_path), ["image", "label"])
        assert [image.shape for image, _ in got] == [(8, 9, 3)] * 5
        assert (got[4][0] == noise(8, 9, 1)).all()

    def test_custom_features(self, tmp_path):
        write_images(tmp_path, image_bbox=[0.5, 1.0], image_words=[b"a", b"b"])
        keys = ["image/bbox", "image/words", "image/height"]
        values = [tf.FixedLenFeature([2], tf.float32), tf.VarLenFeature(tf.string), tf.FixedLenFeature([], tf.int64)]
        with tf.Graph().as_default():
            dataset = images(tmp_path, custom_feature_keys=keys, custom_feature_values=values)
            got = rows(dataset, [*keys, "label"])
        assert [row[0].tolist() for row in got] == [[0.5, 1.0]] * 6
        assert [row[1].values.tolist() for row in got] == [[b"a", b"b"]] * 6
        assert [int(row[2]) for row in got] == list(range(20, 26)) and int(got[5][3]) == 2

    def test_custom_features_in_batches(self, tmp_path):
        write_images(tmp_path, image_words=[b"a", b"b"])
        with tf.Graph().as_default():
            dataset = images(
                tmp_path,
                batch_size=6,
                image_size=8,
                custom_feature_keys=["image/height", "image/words"],
                custom_feature_values=[tf.FixedLenFeature([], tf.int64), tf.VarLenFeature(tf.string)],
            )
            ((heights, words),) = rows(dataset, ["image/height", "image/words"])
        assert heights.tolist() == list(range(20, 26)) and words.dense_shape.tolist() == [6, 2]

    def test_a_run_knows_the_class_names(self, tmp_path):
        write_images(tmp_path / "data")
        (tmp_path / "data" / "labels.txt").write_text("0: daisy\n1: rose\n2: tulip\n")

        def input_fn(mode, **kwargs):
            return images(tmp_path / "data", image_size=8).get(["label", "image"])

        _, seen = run_seeing(input_fn, batch_size=3, log_dir=str(tmp_path / "log"))
        assert seen == [[0, 1, 2]] * 2
        assert [path.read_text() for path in (tmp_path / "log").glob("*labels*")] == ["0: daisy\n1: rose\n2: tulip\n"]


class TestVectors:
    def test_the_given_number_of_classes(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default():
            dataset = images(tmp_path, num_classes=4, label_one_hot=True)
            (label,) = dataset.get(["label"])
            assert label.dtype == tf.float32 and label.shape.as_list() == [4]
            assert column(dataset, "label") == np.eye(4)[[0, 1, 2] * 2].tolist()

    def test_as_many_as_the_label_file_names(self, tmp_path):
        write_images(tmp_path)
        (tmp_path / "labels.txt").write_text("0: a\n1: b\n2: c\n")
        with tf.Graph().as_default():
            dataset = images(tmp_path, label_one_hot=True, batch_size=2, image_size=8)
            assert np.concatenate(column(dataset, "label")).tolist() == np.eye(3)[[0, 1, 2] * 2].tolist()

    def test_an_unknown_number(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default(), pytest.raises(ValueError, match=r"label_one_hot=True.*num_classes.*labels\.txt"):
            images(tmp_path, label_one_hot=True)


def nearest(image, height, width):
    return image[np.arange(height) * image.shape[0] // height][:, np.arange(width) * image.shape[1] // width]


class TestSizesAndBatches:
    @pytest.mark.parametrize(("size", "shape"), [(10, (10, 10)), ((10, 15), (10, 15)), ([40, 60], (40, 60))])
    def test_nearest_neighbour(self, tmp_path, size, shape):
        write_images(tmp_path)
        with tf.Graph().as_default():
            dataset = images(tmp_path, image_size=size)
            assert dataset.get(["image"])[0].shape.as_list() == [*shape, 3]
            got = [image for (image,) in rows(dataset, ["image"])]
        assert all((image == nearest(kept, *shape)).all() for image, kept in zip(got, IMAGES, strict=True))

    @pytest.mark.parametrize(("drop", "lengths"), [(False, [4, 2]), (True, [4])])
    def test_batches(self, tmp_path, drop, lengths):
        write_images(tmp_path)
        with tf.Graph().as_default():
            dataset = images(tmp_path, batch_size=4, image_size=8, drop_remainder=drop)
            got = rows(dataset, ["image", "label", "image_name"])
        assert [len(label) for _, label, _ in got] == lengths
        assert got[0][0].shape == (4, 8, 8, 3) and got[0][2].tolist() == [b"%d.png" % i for i in range(4)]

    def test_batches_of_different_sizes(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default(), pytest.raises(ValueError, match="batch_size=4.*image_size"):
            images(tmp_path, batch_size=4)

    @pytest.mark.parametrize("size", [0, (1, 2, 3), "8", (8, 0)])
    def test_sizes_that_are_none(self, tmp_path, size):
        write_images(tmp_path)
        with tf.Graph().as_default(), pytest.raises(ValueError, match="image_size="):
            images(tmp_path, image_size=size)


class TestFunctionsOfTheUser:
    def test_preprocess_fn_is_given_the_encoded_image(self, tmp_path):
        write_images(tmp_path)

        def preprocess_fn(image_name, image_buf, label, label_desc):
            image = tf.image.decode_png(image_buf)[:5, :5]
            return tf.strings.join(["x/", image_name]), image, label + 10, label_desc

        with tf.Graph().as_default():
            got = rows(images(tmp_path, preprocess_fn=preprocess_fn), ["image", "label", "image_name"])
        assert [row[1:] for row in got] == [(10 + i % 3, b"x/%d.png" % i) for i in range(6)]
        assert all((row[0] == image[:5, :5]).all() for row, image in zip(got, IMAGES, strict=True))

    def test_with_a_batch_size_it_is_given_batches(self, tmp_path):
        write_images(tmp_path)
        shapes = []

        def preprocess_fn(image_name, image_buf, label, label_desc):
            shapes.append(image_buf.shape.rank)
            return image_name, tf.strings.length(image_buf), label, label_desc

        with tf.Graph().as_default():
            got = column(images(tmp_path, preprocess_fn=preprocess_fn, batch_size=4), "image")
        assert set(shapes) == {1}
        assert sum(got, []) == [len(encode(image)) for image in IMAGES]

    def test_augmentation_fn_is_given_the_decoded_image(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default():
            dataset = images(tmp_path, augmentation_fn=lambda image: image[:5, :5], batch_size=6)
            ((got,),) = rows(dataset, ["image"])
        assert (got == np.stack([image[:5, :5] for image in IMAGES])).all()

    @pytest.mark.parametrize("mode", [mox.ModeKeys.TRAIN, mox.ModeKeys.EVAL])
    def test_the_augmentations_of_mox(self, tmp_path, mode):
        write_images(tmp_path)
        with tf.Graph().as_default():
            augment = mox.get_data_augmentation_fn("resnet_v1_50", mode, output_height=16, output_width=16)
            dataset = images(tmp_path, augmentation_fn=augment, batch_size=6, num_epochs=2)
            first, second = (image for (image,) in rows(dataset, ["image"]))
        assert first.shape == (6, 16, 16, 3) and first.dtype == np.float32 and np.isfinite(first).all()
        # Training draws anew in every epoch, evaluation does not draw.
        assert (first == second).all() == (mode == mox.ModeKeys.EVAL)

    def test_it_equals_the_augmentation_behind_get(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default():
            augment = mox.get_data_augmentation_fn("resnet_v1_50", "EVAL", output_height=16, output_width=16)
            inside = images(tmp_path, augmentation_fn=augment)
            (outside,) = images(tmp_path).get(["image"])
            (got,) = inside.get(["image"])
            with tf.Session() as session:
                left, right = session.run([got, augment(outside)])
        np.testing.assert_allclose(left, right, atol=1e-3)

    @pytest.mark.parametrize("name", ["preprocess_fn", "augmentation_fn"])
    def test_they_are_functions(self, tmp_path, name):
        write_images(tmp_path)
        with tf.Graph().as_default(), pytest.raises(ValueError, match=f"{name}='resnet'"):
            images(tmp_path, **{name: "resnet"})


class TestCache:
    @pytest.mark.parametrize("preprocess", [False, True])
    def test_the_second_epoch_equals_the_first(self, tmp_path, preprocess, monkeypatch):
        def preprocess_fn(image_name, image_buf, label, label_desc):
            return image_name, tf.image.decode_png(image_buf), label, label_desc

        write_images(tmp_path / "data")
        stored = []
        put = tfrecord_image.ArrayCache.put
        monkeypatch.setattr(
            tfrecord_image.ArrayCache, "put", lambda cache, *given: (stored.append(given[0]), put(cache, *given))
        )
        with tf.Graph().as_default():
            more = {"preprocess_fn": preprocess_fn} if preprocess else {}
            dataset = images(tmp_path / "data", cache_dir=str(tmp_path / "cache"), num_epochs=3, **more)
            got = [image for (image,) in rows(dataset, ["image"])]
        assert len(got) == 18
        assert all(np.array_equal(image, IMAGES[i % 6]) for i, image in enumerate(got))
        # With so little data the next epochs may be read before the first is kept, but not every time.
        assert set(stored) == set(range(6)) and os.listdir(tmp_path / "cache")

    def test_a_cache_that_is_kept_serves_the_next_run(self, tmp_path, monkeypatch):
        write_images(tmp_path / "data")

        def read():
            with tf.Graph().as_default():
                dataset = images(tmp_path / "data", cache_dir=str(tmp_path / "cache"), remove_cache_on_finish=False)
                return [image for (image,) in rows(dataset, ["image"])]

        first = read()
        gc.collect()  # as if the process had ended: a cache in use is nobody else's
        monkeypatch.setattr(tfrecord_image.ArrayCache, "put", lambda *given: pytest.fail("decoded again"))
        assert all(np.array_equal(left, right) for left, right in zip(first, read(), strict=True))

    def test_changed_files_have_a_cache_of_their_own(self, tmp_path):
        write_images(tmp_path / "data")
        for seed in (0, 50):
            write(tmp_path / "data" / "a.tfrecord", [slim_example(noise(20, 30, seed=seed), 0)])
            os.utime(tmp_path / "data" / "a.tfrecord", (seed, seed))
            with tf.Graph().as_default():
                dataset = images(tmp_path / "data", cache_dir=str(tmp_path / "cache"))
                ((image,),) = rows(dataset, ["image"])
            assert (image == noise(20, 30, seed=seed)).all()

    def test_env(self, tmp_path, monkeypatch):
        write_images(tmp_path / "data")
        monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", str(tmp_path / "cache"))
        with tf.Graph().as_default():
            assert column(images(tmp_path / "data", cache_dir="ENV"), "label") == [0, 1, 2] * 2
        assert os.listdir(tmp_path / "cache")

    def test_augmentation_goes_on_behind_it(self, tmp_path):
        write_images(tmp_path / "data")
        with tf.Graph().as_default():
            augment = mox.get_data_augmentation_fn("resnet_v1_50", "TRAIN", output_height=16, output_width=16)
            arguments = {"cache_dir": str(tmp_path / "cache"), "num_epochs": 2, "batch_size": 6}
            dataset = images(tmp_path / "data", augmentation_fn=augment, **arguments)
            first, second = (image for (image,) in rows(dataset, ["image"]))
        assert first.shape == (6, 16, 16, 3) and (first != second).any()


class TestArguments:
    def test_keys_and_values_of_different_length(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default(), pytest.raises(ValueError, match=r"custom_feature_keys=\['a'\].*one value"):
            images(tmp_path, custom_feature_keys=["a"])

    @pytest.mark.parametrize("key", ["image", "label", "label_desc", "image_name"])
    def test_a_custom_key_with_the_name_of_a_feature(self, tmp_path, key):
        """It would take the feature's place."""
        write_images(tmp_path)
        with tf.Graph().as_default(), pytest.raises(ValueError, match=f"custom_feature_keys=.*{key!r}"):
            images(tmp_path, custom_feature_keys=[key], custom_feature_values=[tf.FixedLenFeature([], tf.int64)])

    def test_metadata_of_another_kind(self, tmp_path):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="metadata=.*ImageClassificationTFRecordMetadata"):
            mox.ImageClassificationTFRecordDataset(str(tmp_path))

    @pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"num_parallel": 0}, {"num_epochs": -1}])
    def test_counts(self, tmp_path, wrong):
        write_images(tmp_path)
        with tf.Graph().as_default(), pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            images(tmp_path, image_size=8, **wrong)


class TestBadRecords:
    def run(self, tmp_path, **arguments):
        def input_fn(mode, **kwargs):
            return images(tmp_path, image_size=8, **arguments).get(["label", "image"])

        result, seen = run_seeing(input_fn)
        return sum(seen, []), [(bad.offset, bad.reason) for bad in result.bad_samples]

    @pytest.mark.parametrize("cached", [False, True])
    def test_each_costs_its_own_record(self, tmp_path, cached):
        mox.set_flag("max_bad_samples", 10)
        records = [slim_example(noise(20, 30, seed=i), i) for i in range(8)]
        records[1] = example({"image/encoded": b"<html>not found</html>", "image/class/label": 1})
        records[3] = example({"image/encoded": encode(noise(20, 30), "png")[:200], "image/class/label": 3})
        records[5] = example({"image/encoded": encode(noise(20, 30), "png")})
        records[6] = example({"image/encoded": b"", "image/class/label": 6})
        offsets = write(tmp_path / "a.tfrecord", records)
        flip_byte(tmp_path / "a.tfrecord", offsets[4] + 40)
        seen, bad = self.run(tmp_path, **({"cache_dir": str(tmp_path / "cache")} if cached else {}))
        assert seen == [0, 2, 7]
        assert [offset for offset, _ in bad] == [offsets[i] for i in (1, 3, 4, 5, 6)]
        reasons = [reason for _, reason in bad]
        assert "not an image: begins with b'<html>" in reasons[0]
        assert "PNG" in reasons[1] and "truncated" in reasons[1]
        assert "checksum" in reasons[2]
        assert "has no 'image/class/label'; it has image/encoded" in reasons[3]
        assert "empty" in reasons[4]

    def test_labels_outside_of_the_classes(self, tmp_path):
        mox.set_flag("max_bad_samples", 10)
        offsets = write(tmp_path / "a.tfrecord", [slim_example(noise(8, 8), label) for label in (0, 3, 1, -1, 2)])
        for more in ({}, {"label_one_hot": True}):
            seen, bad = self.run(tmp_path, num_classes=3, **more)
            assert len(seen) == 3
            assert bad == [
                (offsets[index], f"'image/class/label' is {label}, expected 0 to 2 (num_classes=3)")
                for index, label in ((1, 3), (3, -1))
            ]

    def test_another_layout_stops_with_the_keys_that_are_there(self, tmp_path):
        write(tmp_path / "a.tfrecord", [example({"image_raw": b"x", "label": 1})] * 40)
        with pytest.raises(TooManyBadSamplesError, match="has no 'image/encoded'; it has image_raw, label"):
            self.run(tmp_path, num_epochs=None)

    def test_a_preprocess_fn_that_fails_tells_of_the_image(self, tmp_path):
        write_images(tmp_path)

        def preprocess_fn(image_name, image_buf, label, label_desc):
            return image_name, tf.reshape(tf.image.decode_png(image_buf), [1, 1, 3]), label, label_desc

        with pytest.raises(TooManyBadSamplesError, match="features could not be built.*PNG, 30x20"):
            self.run(tmp_path, preprocess_fn=preprocess_fn)
