"""Datasets of image records for their tests."""

from __future__ import annotations

from record_writing import noise, slim_example, write

import moxing.tensorflow as mox

IMAGES = [noise(20 + seed, 30, seed=seed) for seed in range(6)]


def write_images(directory, **more):
    """Six images of different height with the labels 0, 1, 2, 0, 1, 2."""
    write(
        directory / "a.tfrecord",
        [
            slim_example(image, i % 3, image_filename=b"%d.png" % i, image_class_text=b"text %d" % (i % 3), **more)
            for i, image in enumerate(IMAGES)
        ],
    )
    return directory


def metadata_of(directory, **arguments):
    return mox.ImageClassificationTFRecordMetadata(str(directory), "*.tfrecord", **arguments)


def images(directory, num_classes=0, **arguments):
    settings = {"shuffle": False, "num_epochs": 1, **arguments}
    return mox.ImageClassificationTFRecordDataset(metadata_of(directory, num_classes=num_classes), **settings)
