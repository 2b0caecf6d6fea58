"""ImageNet at sizes that grow during training."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.datasets.sample_source import SEED, Features, SampleSource, register_source, with_private_threads
from moxing.tensorflow.datasets.tfrecord.record_samples import explain_example, explain_image, readable_record
from moxing.tensorflow.datasets.tfrecord.tfrecord_common import RecordReading, record_source
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import SLIM_FEATURES
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import BaseTFRecordMetadata
from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.inception_preprocessing import random_box
from moxing.tensorflow.preprocessing.pictures import EncodedPicture
from moxing.tensorflow.preprocessing.resizing import resize_bilinear

#: File pattern, batch size, image size, and the smallest fraction of the image's area that a crop covers.
Stage = tuple[str, int, int, float]


class ProgressiveImagenetDataset(BaseDataset):
    """Training images in stages, each with its own files, batch size and image size. Create it inside `input_fn`.

    Features: `image`, uint8 batches of random crops, resized and half of them flipped; `label`, int64. It never ends.

    Args:
      num_samples: the number of samples in an epoch, compared with the files.
      strategy_spec: the stages: `(file_glob, batch_size, image_size, min_crop_area)`.
      ds_switch_steps: the steps at which the second, third, ... stage begins.
      shuffle: whether to shuffle the records, in another order each epoch.
      num_parallel: the number of groups of records that are read, and of images that are decoded, in parallel.
      labels_offset: subtracted from the labels; 1 if the records count classes from 1 and the model from 0.
      private_num_threads: the number of threads of the dataset's own; 0 uses TensorFlow's.
      shuffle_buffer_size: the number of records to shuffle over.
    """

    def __init__(
        self,
        num_samples: int,
        strategy_spec: Sequence[Stage],
        ds_switch_steps: Sequence[int],
        shuffle: bool = True,
        num_parallel: int = 8,
        labels_offset: int = 0,
        private_num_threads: int = 0,
        shuffle_buffer_size: int = 6400,
    ) -> None:
        check_counts(num_samples=num_samples)
        check_counts(at_least=0, private_num_threads=private_num_threads, labels_offset=labels_offset)
        steps = list(ds_switch_steps)
        if len(steps) != len(strategy_spec) - 1 or sorted(set(steps)) != steps or any(step < 1 for step in steps):
            raise ValueError(
                f"ds_switch_steps={steps}: expected {len(strategy_spec) - 1} increasing steps from 1, one less than "
                "the stages of strategy_spec."
            )
        sources = []
        for pattern, batch_size, image_size, min_crop_area in strategy_spec:
            check_counts(batch_size=batch_size, image_size=image_size)
            if not 0 < min_crop_area <= 1:
                raise ValueError(f"strategy_spec: min_crop_area={min_crop_area}: expected more than 0 and at most 1.")
            metadata = BaseTFRecordMetadata(os.path.dirname(pattern) or ".", os.path.basename(pattern), num_samples)
            sources.append(
                record_source(
                    metadata,
                    [(_read_stage(image_size, min_crop_area, labels_offset), num_parallel)],
                    RecordReading(shuffle, num_parallel, None, shuffle_buffer_size),
                    finish=_batch_stage(batch_size, private_num_threads),
                    samples_per_element=batch_size,
                    explain_content=lambda record: (
                        explain_example(record, SLIM_FEATURES) or explain_image(record, "image/encoded")
                    ),
                )
            )
        self._source = _StagedSource(sources, [0, *steps])


class _StagedSource:
    """Sources one after the other. A position is a step; bad samples inside a stage do not shift it."""

    endless = True

    def __init__(self, sources: Sequence[SampleSource], begins: Sequence[int]) -> None:
        self._sources, self._begins = sources, begins

    def build(self, start: int = 0) -> tf.data.Dataset:
        """Builds the dataset of batches from step `start` on."""
        dataset = None
        for number, (source, begin) in enumerate(zip(self._sources, self._begins, strict=True)):
            end = self._begins[number + 1] if number + 1 < len(self._begins) else None
            if end is not None and start >= end:
                continue
            done = max(start - begin, 0)
            stage = source.build(done * source.samples_per_element)
            stage = stage if end is None else stage.take(end - begin - done)
            dataset = stage if dataset is None else dataset.concatenate(stage)
        return register_source(self, dataset)

    def position_after(self, start: int, elements: int) -> int:
        """Returns the step after `elements` more batches."""
        return start + elements


def _read_stage(image_size: int, min_crop_area: float, labels_offset: int) -> Callable[[Features], Features]:
    def read(features: Features) -> Features:
        values = tf.parse_single_example(readable_record(features), SLIM_FEATURES)
        for_box, for_mirror = randomness.split(features[SEED], 2)
        picture = EncodedPicture(values["image/encoded"])
        box = random_box(picture, for_box, (image_size, image_size), min_crop_area, covered=min_crop_area)
        image = resize_bilinear(box, image_size, image_size)
        image = tf.compat.v2.image.stateless_random_flip_left_right(image, for_mirror)
        image = tf.saturate_cast(tf.round(image), tf.uint8)
        label = values["image/class/label"] - labels_offset
        return {"image": tf.ensure_shape(image, [image_size, image_size, 3]), "label": label}

    return read


def _batch_stage(batch_size: int, private_threads: int) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    def finish(dataset: tf.data.Dataset) -> tf.data.Dataset:
        dataset = dataset.batch(batch_size, drop_remainder=True)
        if private_threads:
            dataset = with_private_threads(dataset, private_threads)
        return dataset.prefetch(2)

    return finish
