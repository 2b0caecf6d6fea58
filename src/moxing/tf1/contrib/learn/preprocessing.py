"""`tf.contrib.learn.preprocessing`: text as numbers, with the vocabulary of the documents."""

from __future__ import annotations

import collections
import json
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from moxing.framework import file as mox_file

__path__: list[str] = []

__all__ = ["ByteProcessor", "CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]

# Words, abbreviations in capitals, and the parts of CamelCase.
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)

# Where libraries are.
_LIBRARIES = tuple({sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")})

Tokens = Callable[[Iterable[str]], Iterable[Iterable[str]]]


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Yields the words of every document.

    Example:
      >>> list(tokenizer(["It's a TensorFlow-1 test."]))
      [["It's", 'a', 'Tensor', 'Flow-1', 'test']]
    """
    for document in iterator:
        yield _WORD.findall(document)


class CategoricalVocabulary:
    """Numbers for categories, in the order in which they come; 0 is what is unknown.

    Args:
      unknown_token: the category of number 0.
      support_reverse: whether `reverse` is used.

    Example:
      >>> vocabulary = CategoricalVocabulary()
      >>> vocabulary.get('cat'), vocabulary.get('dog'), vocabulary.get('cat'), len(vocabulary)
      (1, 2, 1, 3)
      >>> vocabulary.freeze()
      >>> vocabulary.get('cow'), vocabulary.reverse(2)
      (0, 'dog')
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._support_reverse = support_reverse
        # Programs read these: the attributes have the names of the original.
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._reverse_mapping: list[Any] = [unknown_token]
        self._freq: dict[Any, int] = collections.defaultdict(int)
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Adds no more categories from now on; new ones are unknown."""
        self._freeze = freeze

    def get(self, category: Any) -> int:
        """Returns the number of a category, a new one unless the vocabulary is frozen."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a category."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps the categories that came more than `min_frequency` times, and numbers them by frequency.

        Args:
          min_frequency: categories with this count or less are dropped.
          max_frequency: categories with this count or more are dropped; -1 for no limit.
        """
        by_name = sorted(self._freq.items(), key=lambda item: (isinstance(item[0], str), item[0]))
        by_count = sorted(by_name, key=lambda item: item[1], reverse=True)
        kept = [
            (category, count)
            for category, count in by_count
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        self._reverse_mapping = [self._unknown_token, *(category for category, _ in kept)]
        self._mapping = {category: number for number, category in enumerate(self._reverse_mapping)}
        self._freq = collections.defaultdict(int, kept)

    def reverse(self, class_id: int) -> Any:
        """Returns the category of a number."""
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse.")
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Turns documents into rows of word numbers.

    Args:
      max_document_length: the length of a row. Longer documents are cut, shorter ones padded with 0.
      min_frequency: words that come so often or less are unknown.
      vocabulary: a `CategoricalVocabulary`; a new one by default.
      tokenizer_fn: yields the words of every document.

    Attributes:
      vocabulary_: the vocabulary.

    Example:
      >>> processor = VocabularyProcessor(4)
      >>> [row.tolist() for row in processor.fit_transform(['a cat', 'a dog and a cat'])]
      [[1, 2, 0, 0], [1, 3, 4, 1]]
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: Any = None,
        tokenizer_fn: Tokens | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = CategoricalVocabulary() if vocabulary is None else vocabulary
        self._tokenizer: Tokens = tokenizer if tokenizer_fn is None else tokenizer_fn

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of the documents."""
        del unused_y
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[str], unused_y: Any = None) -> Iterator[np.ndarray]:
        """Learns the words of the documents, then yields their rows."""
        # Both passes read the documents, which may be an iterator.
        documents = list(raw_documents)
        self.fit(documents, unused_y)
        return self.transform(documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """Yields a row of word numbers, int64, for every document."""
        for tokens in self._tokenizer(raw_documents):
            row: np.ndarray = np.zeros(self.max_document_length, np.int64)
            for position, token in enumerate(tokens):
                if position >= self.max_document_length:
                    break
                row[position] = self.vocabulary_.get(token)
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the words of rows of numbers, separated by spaces."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in row)

    def save(self, filename: str) -> None:
        """Writes the processor into a JSON file. TensorFlow 1 wrote a pickle, which runs code when it is read."""
        vocabulary = self.vocabulary_
        content = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "tokenizer": _name_of(self._tokenizer),
            "words": vocabulary._reverse_mapping,
            "counts": dict(vocabulary._freq),
            "support_reverse": vocabulary._support_reverse,
        }
        with mox_file.File(filename, "w") as stream:
            stream.write(json.dumps(content))

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """Reads a processor that `save` wrote.

        Raises:
          ValueError: TensorFlow 1 wrote the file.
        """
        with mox_file.File(filename, "rb") as stream:
            raw = stream.read()
        try:
            content = json.loads(raw)
        except ValueError:
            raise ValueError(
                f"{filename} is not a vocabulary of this version. A file of TensorFlow 1 is a pickle of its own "
                "classes: call fit on the training texts and save again."
            ) from None
        unknown, *words = content["words"]
        vocabulary = CategoricalVocabulary(unknown, content["support_reverse"])
        for word in words:
            vocabulary.get(word)
        vocabulary._freq.update(content["counts"])
        vocabulary.freeze()
        return cls(content["max_document_length"], content["min_frequency"], vocabulary, _found(content["tokenizer"]))


class ByteProcessor:
    """Turns documents into rows of bytes.

    Args:
      max_document_length: the length of a row. Longer documents are cut, shorter ones padded with 0.

    Example:
      >>> next(ByteProcessor(4).transform(['hi'])).tolist()
      [104, 105, 0, 0]
    """

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> ByteProcessor:
        """Does nothing: bytes need no vocabulary."""
        del x
        return self

    def fit_transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        """Yields the rows."""
        return self.transform(x)

    def transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        """Yields a row of bytes, uint8, for every document."""
        for document in x:
            data = document.encode("utf-8") if isinstance(document, str) else bytes(document)
            row: np.ndarray = np.zeros(self.max_document_length, np.uint8)
            cut = data[: self.max_document_length]
            row[: len(cut)] = np.frombuffer(cut, np.uint8)
            yield row

    def reverse(self, x: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the text of rows of bytes."""
        for row in x:
            yield bytes(np.trim_zeros(np.asarray(row, np.uint8), "b")).decode("utf-8", "ignore")


def _name_of(function: Any) -> list[str]:
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    try:
        if _found([module, name]) is function:
            return [module, name]
    except (AttributeError, KeyError, ValueError):
        pass
    raise ValueError(f"tokenizer_fn={function!r} cannot be saved: define it as a function of your own module.")


def _found(place: list[str]) -> Any:
    """Returns a function of a loaded module that is the user's: a file may not name any function of a library."""
    module, name = place
    if module == __name__ and name == tokenizer.__name__:
        return tokenizer
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    path = value.__code__.co_filename if isinstance(value, FunctionType) else None
    if path is None or any(path.startswith(directory) for directory in _LIBRARIES):
        raise ValueError(
            f"the tokenizer {module}.{name} of a saved VocabularyProcessor is not a function of a module that is "
            "imported: import it before restore."
        )
    return value
