"""Data sets of image files in folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.array_cache import ArrayCache, resolve_cache_dir
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.datasets.image_stages import ImageStages
from moxing.tensorflow.datasets.journal import current_journal
from moxing.tensorflow.datasets.raw.image_files import ImageFiles, image_samples
from moxing.tensorflow.datasets.raw.raw_metadata import (
    ImageClassificationRawMetadata,
    MultilabelClassificationRawMetadata,
    read_in_threads,
    read_sample_labels,
)
from moxing.tensorflow.datasets.raw.split import split_image_classification_dataset
from moxing.tensorflow.datasets.reader.readers import make_reader
from moxing.tensorflow.datasets.sample_order import SampleOrder
from moxing.tensorflow.datasets.sample_source import SampleSource
from moxing.tf1.data_seeds import dataset_seed

__all__ = [
    "ImageClassificationRawDataset",
    "MultilabelClassificationRawDataset",
    "split_image_classification_dataset",
]


class ImageClassificationRawDataset(BaseDataset):
    """Images in folders, one folder per class. Make it inside `input_fn`.

    Features: `image` (uint8, height x width x 3, unless an augmentation says otherwise), `label` (int64), `label_desc`
    (the class's name), `image_name` (the file's name).

    Args:
      metadata: an `ImageClassificationRawMetadata`.
      batch_size: samples per batch; None: single samples, for `mox.run` to batch.
      num_readers: files that are read at once; on an object store `--data_requests` if that is more.
      num_epochs: how often the data is gone through; None: without end.
      shuffle: every epoch in an order of its own, over the whole data set.
      shuffle_buffer_size: over how many samples the order is to be mixed, at least. It is always mixed over all.
      capacity: files that are read ahead.
      cache_dir: keep decoded images in this directory for the following epochs; 'ENV': `$DLS_LOCAL_CACHE_PATH`.
      preprocess_fn: `(image_name, image_buf, label, label_desc)` to the same four, in place of decoding and resizing;
        with `batch_size` it is given batches.
      preprocess_threads: images that are decoded and augmented at once.
      image_size: a number, or (height, width), to resize to (nearest neighbour).
      remove_cache_on_finish: remove the cache when the process ends.
      private_num_threads: threads of the data set's own; 0: TensorFlow's.
      reader_class: `mox.AsyncRawGenerator` reads in processes of its own; None or `ParallelReader`: in threads. Files
        on an object store are always read by threads that only wait for it.
      reader_kwargs: arguments of the reader.
      drop_remainder: leave out the last batch if it is short.
      augmentation_fn: from one image to one image; those of `mox.get_data_augmentation_fn` decode only what they use.
      label_one_hot: `label` is a vector of float32.

    Example:
      >>> import os, tempfile
      >>> from PIL import Image
      >>> folder = tempfile.mkdtemp()
      >>> for name in ('cat', 'dog'):
      ...     os.mkdir(os.path.join(folder, name))
      ...     Image.new('RGB', (8, 6)).save(os.path.join(folder, name, '0.png'))
      >>> metadata = ImageClassificationRawMetadata(folder)
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     dataset = ImageClassificationRawDataset(metadata, shuffle=False)
      ...     image, label = session.run(dataset.get(['image', 'label']))
      >>> image.shape, int(label)
      ((6, 8, 3), 0)
    """

    def __init__(
        self,
        metadata: ImageClassificationRawMetadata,
        batch_size: int | None = None,
        num_readers: int = 8,
        num_epochs: int | None = None,
        shuffle: bool = True,
        shuffle_buffer_size: int = 16,
        capacity: int = 256,
        cache_dir: str | None = None,
        preprocess_fn: Callable[..., Sequence[tf.Tensor]] | None = None,
        preprocess_threads: int = 12,
        image_size: Any = None,
        remove_cache_on_finish: bool = True,
        private_num_threads: int = 0,
        reader_class: Any = None,
        reader_kwargs: dict[str, Any] | None = None,
        drop_remainder: bool = False,
        augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
        label_one_hot: bool = False,
    ) -> None:
        if not isinstance(metadata, ImageClassificationRawMetadata):
            raise ValueError(f"metadata={metadata!r}: expected an ImageClassificationRawMetadata.")
        reader = make_reader(reader_class, num_readers, reader_kwargs)
        names = [metadata.labels_list[label] for label in metadata.labels]
        samples = image_samples(metadata.paths, metadata.labels, names, reader, metadata.objects)
        self._source = _raw_source(
            samples,
            metadata.labels_to_names,
            batch_size=batch_size,
            num_readers=num_readers,
            num_epochs=num_epochs,
            shuffle=shuffle,
            shuffle_buffer_size=shuffle_buffer_size,
            capacity=capacity,
            cache_dir=cache_dir,
            preprocess_fn=preprocess_fn,
            preprocess_threads=preprocess_threads,
            image_size=image_size,
            remove_cache_on_finish=remove_cache_on_finish,
            private_num_threads=private_num_threads,
            drop_remainder=drop_remainder,
            augmentation_fn=augmentation_fn,
            num_classes=metadata.num_classes if label_one_hot else None,
        )


class MultilabelClassificationRawDataset(BaseDataset):
    """Images of which each belongs to any number of classes. Make it inside `input_fn`.

    Features as in `ImageClassificationRawDataset`; `label` is a float32 vector with a 1 for each class, `label_desc`
    the names as they stand in the label file, joined by `label_sep`.

    Args:
      metadata: a `MultilabelClassificationRawMetadata`.
      label_sep: stands between the names in a label file.
      skip_label_not_found: leave out images that have no label file; otherwise they are an error.
      batch_size, num_readers, num_epochs, shuffle, shuffle_buffer_size, capacity, cache_dir, preprocess_fn,
        preprocess_threads, image_size, remove_cache_on_finish, private_num_threads, reader_class, reader_kwargs,
        drop_remainder, augmentation_fn: as in `ImageClassificationRawDataset`.
    """

    def __init__(
        self,
        metadata: MultilabelClassificationRawMetadata,
        batch_size: int | None = None,
        num_readers: int = 8,
        num_epochs: int | None = None,
        shuffle: bool = True,
        shuffle_buffer_size: int = 16,
        capacity: int = 256,
        cache_dir: str | None = None,
        preprocess_fn: Callable[..., Sequence[tf.Tensor]] | None = None,
        preprocess_threads: int = 12,
        image_size: Any = None,
        remove_cache_on_finish: bool = True,
        private_num_threads: int = 0,
        reader_class: Any = None,
        reader_kwargs: dict[str, Any] | None = None,
        drop_remainder: bool = False,
        label_sep: str = "\n",
        skip_label_not_found: bool = False,
        augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> None:
        if not isinstance(metadata, MultilabelClassificationRawMetadata):
            raise ValueError(f"metadata={metadata!r}: expected a MultilabelClassificationRawMetadata.")
        reader = make_reader(reader_class, num_readers, reader_kwargs)
        numbers, labels, names = _with_labels(metadata, label_sep, skip_label_not_found)
        paths = [metadata.paths[number] for number in numbers]
        objects = None if metadata.objects is None else [metadata.objects[number] for number in numbers]
        samples = image_samples(paths, labels, names, reader, objects)
        self._source = _raw_source(
            samples,
            metadata.labels_to_names,
            batch_size=batch_size,
            num_readers=num_readers,
            num_epochs=num_epochs,
            shuffle=shuffle,
            shuffle_buffer_size=shuffle_buffer_size,
            capacity=capacity,
            cache_dir=cache_dir,
            preprocess_fn=preprocess_fn,
            preprocess_threads=preprocess_threads,
            image_size=image_size,
            remove_cache_on_finish=remove_cache_on_finish,
            private_num_threads=private_num_threads,
            drop_remainder=drop_remainder,
            augmentation_fn=augmentation_fn,
        )


def _raw_source(
    samples: ImageFiles,
    labels: Mapping[int, str],
    *,
    batch_size: int | None,
    num_readers: int,
    num_epochs: int | None,
    shuffle: bool,
    shuffle_buffer_size: int,
    capacity: int,
    cache_dir: str | None,
    preprocess_fn: Callable[..., Sequence[tf.Tensor]] | None,
    preprocess_threads: int,
    image_size: Any,
    remove_cache_on_finish: bool,
    private_num_threads: int,
    drop_remainder: bool,
    augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None,
    num_classes: int | None = None,
) -> SampleSource:
    check_counts(
        batch_size=batch_size, num_readers=num_readers, num_epochs=num_epochs, capacity=capacity,
        shuffle_buffer_size=shuffle_buffer_size, preprocess_threads=preprocess_threads,
    )  # fmt: skip
    check_counts(at_least=0, private_num_threads=private_num_threads)
    directory = resolve_cache_dir(cache_dir)
    form = "decoded" if preprocess_fn is None else "encoded"
    cache = ArrayCache(directory, samples.versions, form, remove_cache_on_finish) if directory else None
    samples.skip_cached(cache)
    stages = ImageStages(
        samples.read,
        readers=num_readers,
        threads=preprocess_threads,
        batch_size=batch_size,
        image_size=image_size,
        preprocess_fn=preprocess_fn,
        augmentation_fn=augmentation_fn,
        drop_remainder=drop_remainder,
        num_classes=num_classes,
        private_threads=private_num_threads,
        cache=cache,
    )
    seed = dataset_seed()
    journal = current_journal()
    journal.add_labels(labels)
    return SampleSource(
        samples,
        SampleOrder(len(samples.paths), num_epochs, seed if shuffle else None),
        seed,
        journal,
        stages.stages(),
        capacity=capacity,
        fetchers=samples.fetchers,
        finish=stages.finish,
        samples_per_element=batch_size or 1,
    )


def _with_labels(
    metadata: MultilabelClassificationRawMetadata, label_sep: str, skip_label_not_found: bool
) -> tuple[list[int], np.ndarray, list[str]]:
    """Numbers, label vectors and joined names of the images that have labels."""
    kept: list[int] = []
    rows: list[np.ndarray] = []
    joined: list[str] = []
    missing: list[str] = []
    label_files = [path for path in metadata.label_paths if path is not None]
    all_names = iter(read_in_threads(lambda path: read_sample_labels(path, label_sep), label_files))
    for number, (path, label_path) in enumerate(zip(metadata.paths, metadata.label_paths, strict=True)):
        if label_path is None:
            missing.append(path)
            continue
        names = next(all_names)
        unknown = [name for name in names if name not in metadata.names_to_labels]
        if unknown:
            guess = metadata.guessed_label_sep or " "
            raise ValueError(
                f"{label_path}: {unknown[0]!r} is not one of the {metadata.num_classes} classes, with names separated "
                f"by label_sep={label_sep!r}. Give another label_sep, such as {guess!r}, or add the name to labels.txt."
            )
        row: np.ndarray = np.zeros(metadata.num_classes, np.float32)
        row[[metadata.names_to_labels[name] for name in names]] = 1
        kept.append(number)
        rows.append(row)
        joined.append(label_sep.join(names))
    if missing and not skip_label_not_found:
        raise ValueError(
            f"{len(missing)} images have no label file, {missing[0]} for one. Add the files, or leave such images out "
            "with skip_label_not_found=True."
        )
    if not kept:
        raise ValueError(f"base_dir={metadata.base_dir!r}: no image has a label file.")
    if missing:
        tf.logging.warning("Left out %d images without a label file.", len(missing))
    return kept, np.stack(rows), joined
