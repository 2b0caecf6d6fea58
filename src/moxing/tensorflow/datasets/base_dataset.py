"""The base class of all datasets: named features, and `get`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.sample_source import HIDDEN, SEED, Resumable
from moxing.tensorflow.preprocessing.randomness import SAMPLE_SEEDS


class BaseDataset:
    """A dataset of named features. Subclasses set `_source`. Create it inside `input_fn`."""

    _source: Resumable
    _element: Mapping[str, tf.Tensor] | None = None

    def get(self, names: Sequence[str]) -> list[tf.Tensor]:
        """Returns features of one element: of a sample or, with `batch_size`, of a batch.

        Args:
          names: the names of the features. All calls for one dataset return features of the same element.
        """
        if isinstance(names, str):
            raise ValueError(f"dataset.get({names!r}): expected a list of names, such as [{names!r}].")
        if self._element is None:
            self._element = self._next_element()
        known = [name for name in self._element if name not in HIDDEN]
        for name in names:
            if name not in known:
                raise ValueError(f"dataset.get: there is no feature {name!r}; expected one of {', '.join(known)}.")
        return [self._element[name] for name in names]

    def _next_element(self) -> Mapping[str, tf.Tensor]:
        element: Mapping[str, tf.Tensor] = tf.data.make_one_shot_iterator(self._source.build()).get_next()
        if SEED in element and element[SEED].shape.rank == 1:
            # A single sample: random operations on it use the seed of the sample.
            operations = frozenset(tensor.op.name for tensor in element.values())
            tf.add_to_collection(SAMPLE_SEEDS, (operations, element[SEED]))
        return element
