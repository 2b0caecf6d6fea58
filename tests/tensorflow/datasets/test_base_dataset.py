"""`get`: names to tensors of one element, in every kind of session."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import elements, session, write_folder

from moxing.tensorflow.datasets import ImageClassificationRawDataset, ImageClassificationRawMetadata
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.preprocessing import get_data_augmentation_fn


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    write_folder(folder, {"cat": 4, "dog": 3})
    return ImageClassificationRawMetadata(str(folder))


class Numbers(BaseDataset):
    """A dataset without images, and not of numbered samples."""

    class Source:
        def build(self, start=0):
            return tf.data.Dataset.range(5).map(lambda number: {"one": number, "ten": number * 10})

    def __init__(self):
        self._source = self.Source()


def test_names_in_their_order_and_all_calls_speak_of_one_element():
    with session() as opened:
        dataset = Numbers()
        ten, one = dataset.get(["ten", "one"])
        (again,) = dataset.get(["one"])
        for number in range(5):
            assert opened.run([ten, one, again]) == [10 * number, number, number]


def test_wrong_names():
    with tf.Graph().as_default():
        dataset = Numbers()
        with pytest.raises(ValueError, match="no feature 'two'; expected one of one, ten"):
            dataset.get(["one", "two"])
        with pytest.raises(ValueError, match=r"dataset.get\('one'\).*\['one'\]"):
            dataset.get("one")
        assert dataset.get([]) == []


@pytest.mark.parametrize("options", [{}, {"batch_size": 2, "image_size": 4}, {"cache_dir": "here"}], ids=str)
def test_only_the_documented_features_are_there(metadata, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with tf.Graph().as_default():
        dataset = ImageClassificationRawDataset(metadata, **options)
        for name in ("fetched", "moxing/position"):
            with pytest.raises(ValueError, match="no feature") as error:
                dataset.get([name])
            listed = str(error.value).split("expected one of ")[1].rstrip(".").split(", ")
            assert sorted(listed) == ["image", "image_name", "label", "label_desc"]


def names_of(dataset, opened) -> list[str]:
    name, label = dataset.get(["image_name", "label"])
    got = []
    try:
        while True:
            got.append(opened.run([name, label])[0].decode())
    except tf.errors.OutOfRangeError:
        return got


ALL = [f"{number:03d}.png" for number in range(7)]


def test_under_a_plain_session(metadata):
    with session() as opened:
        assert names_of(ImageClassificationRawDataset(metadata, num_epochs=1, shuffle=False), opened) == ALL


def test_under_a_monitored_training_session(metadata, tmp_path):
    with tf.Graph().as_default():
        tf.train.create_global_step()
        (name,) = ImageClassificationRawDataset(metadata, num_epochs=1, shuffle=False).get(["image_name"])
        names = []
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_secs=600, log_step_count_steps=None
        ) as opened:
            while not opened.should_stop():
                names.append(opened.run(name).decode())
    assert names == ALL


def test_under_a_supervisor(metadata, tmp_path, caplog):
    with tf.Graph().as_default():
        tf.train.create_global_step()
        image, name = ImageClassificationRawDataset(metadata, num_epochs=1, shuffle=False).get(["image", "image_name"])
        augmented = get_data_augmentation_fn("cifarnet", "TRAIN", 8, 8)(image)
        supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0, save_model_secs=0)
        names = []
        with supervisor.managed_session() as opened:
            while not supervisor.should_stop():
                names.append(opened.run([name, augmented])[0].decode())
    assert names == ALL
    assert "serializing" not in caplog.text


def test_augmentation_of_a_sample_by_the_user_follows_its_seed(metadata):
    def augmented():
        with session() as opened:
            tf.set_random_seed(4)
            image, name = ImageClassificationRawDataset(metadata, num_epochs=2).get(["image", "image_name"])
            return elements(opened, [name, get_data_augmentation_fn("cifarnet", "TRAIN", 8, 8)(image)])

    one, other = augmented(), augmented()
    assert [name for name, _ in one] == [name for name, _ in other]
    assert len(one) == 14
    for (_, left), (_, right) in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)
