"""MoXing's datasets, read by a plain session: `raw`, `async` (raw with AsyncRawGenerator), `tfrecord` or `cache`.

With the second argument `memory`, reports memory after each epoch instead of speed.
"""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf
from common import BATCH, SIDE, WARM_UP, arguments, report, report_memory


def open_dataset(kind: str, folder: Path, cache_dir: str):
    """Return the dataset and its number of images."""
    augmentation = mox.get_data_augmentation_fn("vgg_16", mox.ModeKeys.TRAIN, SIDE, SIDE)
    if kind == "tfrecord":
        metadata = mox.ImageClassificationTFRecordMetadata(str(folder / "tfrecord"), "flowers_train_*.tfrecord")
        dataset = mox.ImageClassificationTFRecordDataset(
            metadata, batch_size=BATCH, augmentation_fn=augmentation, drop_remainder=True
        )
        return dataset, metadata.num_samples
    metadata = mox.ImageClassificationRawMetadata(str(folder / "jpeg"))
    dataset = mox.ImageClassificationRawDataset(
        metadata,
        batch_size=BATCH,
        augmentation_fn=augmentation,
        cache_dir=cache_dir if kind == "cache" else None,
        reader_class=mox.AsyncRawGenerator if kind == "async" else None,
        drop_remainder=True,
    )
    return dataset, metadata.total_num_samples


def batches(session: tf.Session, fetches: list[tf.Tensor]) -> Iterator:
    while True:
        yield session.run(fetches)


def main() -> None:
    (kind, *rest), folder, images = arguments()
    # On the disk of the images: the system's temporary folder may be in memory.
    with tempfile.TemporaryDirectory(dir=folder) as cache_dir, tf.Graph().as_default():
        dataset, epoch = open_dataset(kind, folder, cache_dir)
        fetches = dataset.get(["image", "label"])
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            if rest == ["memory"]:
                report_memory(batches(session, fetches), epoch)
            else:
                # The first epoch fills the cache; the second is measured.
                report(batches(session, fetches), images, epoch if kind == "cache" else WARM_UP)


if __name__ == "__main__":
    main()
