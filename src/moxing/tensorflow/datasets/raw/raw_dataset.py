"""Datasets of image files in folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.array_cache import ArrayCache, resolve_cache_dir
from moxing.tensorflow.datasets.bad_samples import current_bad_sample_log
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.datasets.class_names import current_class_names
from moxing.tensorflow.datasets.image_stages import ImageStages
from moxing.tensorflow.datasets.raw.image_files import ImageFiles, image_samples
from moxing.tensorflow.datasets.raw.label_files import read_in_threads, read_sample_labels
from moxing.tensorflow.datasets.raw.raw_metadata import (
    ImageClassificationRawMetadata,
    MultilabelClassificationRawMetadata,
)
from moxing.tensorflow.datasets.reader.readers import make_reader
from moxing.tensorflow.datasets.sample_order import SampleOrder
from moxing.tensorflow.datasets.sample_source import SampleSource
from moxing.tensorflow.datasets.stored.objects import StoredObject
from moxing.tensorflow.datasets.tools.split import split_image_classification_dataset
from moxing.tf1.graph.data_seeds import dataset_seed

__all__ = [
    "ImageClassificationRawDataset",
    "MultilabelClassificationRawDataset",
    "split_image_classification_dataset",
]


@dataclass(eq=False, repr=False)
class _RawDataset(BaseDataset):
    """The arguments that both datasets of image files have, in their order, and what they build from them."""

    metadata: Any
    batch_size: int | None = None
    num_readers: int = 8
    num_epochs: int | None = None
    shuffle: bool = True
    shuffle_buffer_size: int = 16
    capacity: int = 256
    cache_dir: str | None = None
    preprocess_fn: Callable[..., Sequence[tf.Tensor]] | None = None
    preprocess_threads: int = 12
    image_size: Any = None
    remove_cache_on_finish: bool = True
    private_num_threads: int = 0
    reader_class: Any = None
    reader_kwargs: dict[str, Any] | None = None
    drop_remainder: bool = False

    def _build_source(
        self,
        files: _LabelledImages,
        augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None,
        num_classes: int | None = None,
    ) -> SampleSource:
        """Builds the source of the samples.

        Args:
          files: the images and their labels.
          augmentation_fn: takes an image and returns an image.
          num_classes: the length of one-hot labels; None keeps the labels as they are.
        """
        check_counts(
            batch_size=self.batch_size, num_readers=self.num_readers, num_epochs=self.num_epochs,
            capacity=self.capacity, shuffle_buffer_size=self.shuffle_buffer_size,
            preprocess_threads=self.preprocess_threads,
        )  # fmt: skip
        check_counts(at_least=0, private_num_threads=self.private_num_threads)
        reader = make_reader(self.reader_class, self.num_readers, self.reader_kwargs)
        samples = image_samples(files.paths, files.labels, files.names, reader, files.objects)
        images = ImageStages(
            samples.read,
            readers=self.num_readers,
            threads=self.preprocess_threads,
            batch_size=self.batch_size,
            image_size=self.image_size,
            preprocess_fn=self.preprocess_fn,
            augmentation_fn=augmentation_fn,
            drop_remainder=self.drop_remainder,
            num_classes=num_classes,
            private_threads=self.private_num_threads,
            cache=self._open_cache(samples) if self.cache_dir else None,
        )
        stages = images.stages()
        seed = dataset_seed()
        current_class_names().add(self.metadata.labels_to_names)
        return SampleSource(
            samples,
            SampleOrder(len(samples.paths), self.num_epochs, seed if self.shuffle else None),
            seed,
            current_bad_sample_log(),
            stages,
            capacity=self.capacity,
            fetchers=samples.fetchers,
            finish=images.finish,
            samples_per_element=self.batch_size or 1,
        )

    def _open_cache(self, samples: ImageFiles) -> ArrayCache | None:
        directory = resolve_cache_dir(self.cache_dir)
        if directory is None:
            return None
        form = "decoded" if self.preprocess_fn is None else "encoded"
        cache = ArrayCache(directory, samples.versions, form, self.remove_cache_on_finish)
        samples.skip_cached(cache)
        return cache


@dataclass(frozen=True)
class _LabelledImages:
    """Image files with a label and a class name each; `objects` for files on an object store."""

    paths: Sequence[str]
    labels: np.ndarray
    names: Sequence[str]
    objects: Sequence[StoredObject] | None


@dataclass(eq=False, repr=False)
class ImageClassificationRawDataset(_RawDataset):
    """Images in folders, one folder per class. Create it inside `input_fn`.

    Features: `image` (uint8, height x width x 3, unless an augmentation changes that), `label` (int64), `label_desc`
    (the class name), `image_name` (the file name).

    Args:
      metadata: an `ImageClassificationRawMetadata`.
      batch_size: samples per batch; None returns single samples, which `mox.run` batches.
      num_readers: the number of files that are read in parallel; on an object store `--data_requests` if that is more.
      num_epochs: the number of passes over the data; None repeats it forever.
      shuffle: whether to shuffle the samples, in another order each epoch, over the whole dataset.
      shuffle_buffer_size: the least number of samples to shuffle over. Samples are always shuffled over all.
      capacity: the number of files to prefetch.
      cache_dir: a directory that keeps decoded images for the following epochs; 'ENV' is `$DLS_LOCAL_CACHE_PATH`.
      preprocess_fn: takes `(image_name, image_buf, label, label_desc)` and returns the same four; it replaces decoding
        and resizing. With `batch_size` it is called with batches.
      preprocess_threads: the number of images that are decoded and augmented in parallel.
      image_size: a number, or (height, width), to resize to (nearest neighbour).
      remove_cache_on_finish: whether to remove the cache when the process ends.
      private_num_threads: the number of threads of the dataset's own; 0 uses TensorFlow's.
      reader_class: `mox.AsyncRawGenerator` reads in separate processes; None or `ParallelReader` read in threads. Files
        on an object store are always read by threads of their own.
      reader_kwargs: the arguments of the reader.
      drop_remainder: whether to drop the last batch if it is short.
      augmentation_fn: takes an image and returns an image. One of `mox.get_data_augmentation_fn` decodes only the part
        of an image that it uses.
      label_one_hot: whether `label` is a one-hot float32 vector.

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

    metadata: ImageClassificationRawMetadata
    augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None
    label_one_hot: bool = False

    def __post_init__(self) -> None:
        metadata = self.metadata
        if not isinstance(metadata, ImageClassificationRawMetadata):
            raise ValueError(f"metadata={metadata!r}: expected an ImageClassificationRawMetadata.")
        names = [metadata.labels_list[label] for label in metadata.labels]
        files = _LabelledImages(metadata.paths, metadata.labels, names, metadata.objects)
        num_classes = metadata.num_classes if self.label_one_hot else None
        self._source = self._build_source(files, self.augmentation_fn, num_classes)


@dataclass(eq=False, repr=False)
class MultilabelClassificationRawDataset(_RawDataset):
    """Images that belong to any number of classes each. Create it inside `input_fn`.

    Features as in `ImageClassificationRawDataset`; `label` is a float32 vector with a 1 for each class, `label_desc`
    the names as they stand in the label file, joined by `label_sep`.

    Args:
      metadata: a `MultilabelClassificationRawMetadata`.
      label_sep: the separator of the names in a label file.
      skip_label_not_found: whether to skip images without a label file; otherwise they are an error.
      batch_size, num_readers, num_epochs, shuffle, shuffle_buffer_size, capacity, cache_dir, preprocess_fn,
        preprocess_threads, image_size, remove_cache_on_finish, private_num_threads, reader_class, reader_kwargs,
        drop_remainder, augmentation_fn: as in `ImageClassificationRawDataset`.
    """

    metadata: MultilabelClassificationRawMetadata
    label_sep: str = "\n"
    skip_label_not_found: bool = False
    augmentation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.metadata, MultilabelClassificationRawMetadata):
            raise ValueError(f"metadata={self.metadata!r}: expected a MultilabelClassificationRawMetadata.")
        files = _read_labels(self.metadata, self.label_sep, self.skip_label_not_found)
        self._source = self._build_source(files, self.augmentation_fn)


def _read_labels(
    metadata: MultilabelClassificationRawMetadata, label_sep: str, skip_label_not_found: bool
) -> _LabelledImages:
    """Reads the label files and returns the images that have one."""
    numbers: list[int] = []
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
                f"by label_sep={label_sep!r}. Pass another label_sep, such as {guess!r}, or add the name to labels.txt."
            )
        row: np.ndarray = np.zeros(metadata.num_classes, np.float32)
        row[[metadata.names_to_labels[name] for name in names]] = 1
        numbers.append(number)
        rows.append(row)
        joined.append(label_sep.join(names))
    if missing and not skip_label_not_found:
        raise ValueError(
            f"{len(missing)} images have no label file, {missing[0]} for one. Add the files, or skip such images "
            "with skip_label_not_found=True."
        )
    if not numbers:
        raise ValueError(f"base_dir={metadata.base_dir!r}: no image has a label file.")
    if missing:
        tf.logging.warning("Skipped %d images without a label file.", len(missing))
    paths = [metadata.paths[number] for number in numbers]
    objects = None if metadata.objects is None else [metadata.objects[number] for number in numbers]
    return _LabelledImages(paths, np.stack(rows), joined, objects)
