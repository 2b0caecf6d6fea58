"""What every data set class has: named features, and `get`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.sample_source import HIDDEN, SEED, Resumable
from moxing.tensorflow.preprocessing.randomness import SAMPLE_SEEDS


class BaseDataset:
    """A data set of named features. Subclasses set `_source`; make it inside `input_fn`."""

    _source: Resumable
    _element: Mapping[str, tf.Tensor] | None = None

    def get(self, names: Sequence[str]) -> list[tf.Tensor]:
        """The features of one element, which is a sample or, with `batch_size`, a batch.

        Args:
          names: which features, in which order. All calls of one data set speak of the same element.
        """
        if isinstance(names, str):
            raise ValueError(f"dataset.get({names!r}): expected a list of names, such as [{names!r}].")
        if self._element is None:
            self._element = self._next_element()
        known = [name for name in self._element if name not in HIDDEN]
        for name in names:
            if name not in known:
                raise ValueError(f"dataset.get: there is no feature {name!r}; there are {', '.join(known)}.")
        return [self._element[name] for name in names]

    def _next_element(self) -> Mapping[str, tf.Tensor]:
        element: Mapping[str, tf.Tensor] = tf.data.make_one_shot_iterator(self._source.build()).get_next()
        if SEED in element and element[SEED].shape.rank == 1:
            # A single sample: random work that the user builds on it draws from the sample's own seed.
            operations = frozenset(tensor.op.name for tensor in element.values())
            tf.add_to_collection(SAMPLE_SEEDS, (operations, element[SEED]))
        return element
