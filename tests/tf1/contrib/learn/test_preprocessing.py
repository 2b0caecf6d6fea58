"""tf.contrib.learn.preprocessing: vocabularies, saved and restored."""

import numpy as np
import pytest

from moxing.tf1 import contrib
from moxing.tf1.contrib.learn import preprocessing
from moxing.tf1.contrib.learn.preprocessing import ByteProcessor, CategoricalVocabulary, VocabularyProcessor

TEXTS = ["the cat sat on the mat", "the dog's HTMLParser, the-end", "the cat"]


def words(documents):
    for document in documents:
        yield document.split()


def test_rows_of_word_numbers():
    assert contrib.learn.preprocessing.VocabularyProcessor is VocabularyProcessor
    processor = VocabularyProcessor(6)
    rows = np.array(list(processor.fit_transform(iter(TEXTS))))
    assert rows.dtype == np.int64
    # In the order of their first use, 1 and up; the rest of a row is 0.
    assert rows.tolist() == [[1, 2, 3, 4, 1, 5], [1, 6, 7, 8, 9, 0], [1, 2, 0, 0, 0, 0]]
    assert list(processor.transform(["cow cat"]))[0].tolist() == [0, 2, 0, 0, 0, 0]
    assert list(processor.reverse([[1, 6, 0]])) == ["the dog's <UNK>"]
    assert processor.vocabulary_._mapping["cat"] == 2 and len(processor.vocabulary_) == 10


def test_rare_words_are_unknown_and_the_rest_is_numbered_by_frequency():
    processor = VocabularyProcessor(4, min_frequency=1, tokenizer_fn=words)
    assert np.array(list(processor.fit_transform(TEXTS)))[0].tolist() == [1, 2, 0, 0]
    assert processor.vocabulary_._mapping == {"<UNK>": 0, "the": 1, "cat": 2}
    vocabulary = CategoricalVocabulary(support_reverse=False)
    for word in "aaabbc":
        vocabulary.add(word)
    vocabulary.trim(0, max_frequency=3)
    assert vocabulary._mapping == {"<UNK>": 0, "b": 1, "c": 2}
    with pytest.raises(ValueError, match="support_reverse"):
        vocabulary.reverse(1)


def test_a_saved_processor_is_the_same(tmp_path):
    path = str(tmp_path / "vocab")
    processor = VocabularyProcessor(5, min_frequency=1, tokenizer_fn=words)
    before = np.array(list(processor.fit_transform(TEXTS)))
    processor.save(path)
    restored = VocabularyProcessor.restore(path)
    np.testing.assert_array_equal(np.array(list(restored.transform(TEXTS))), before)
    assert restored._tokenizer is words and restored.vocabulary_._freq == processor.vocabulary_._freq
    plain = VocabularyProcessor(5).fit(TEXTS)
    plain.save(path)
    assert VocabularyProcessor.restore(path)._tokenizer is preprocessing.tokenizer


def test_what_cannot_be_saved_or_restored(tmp_path):
    path = tmp_path / "vocab"
    with pytest.raises(ValueError, match="cannot be saved: define it as a function of your own module"):
        VocabularyProcessor(2, tokenizer_fn=lambda texts: (text.split() for text in texts)).save(str(path))
    path.write_bytes(b"\x80\x03ctensorflow.contrib.learn\nVocabularyProcessor\n.")
    with pytest.raises(ValueError, match="is a pickle of its own"):
        VocabularyProcessor.restore(str(path))
    # A file cannot name a function of a library, nor one of a module that is not imported.
    VocabularyProcessor(2).fit(TEXTS).save(str(path))
    good = path.read_text()
    for bad in ('["json", "loads"]', '["no_such_module", "f"]'):
        path.write_text(good.replace('["moxing.tf1.contrib.learn.preprocessing", "tokenizer"]', bad))
        with pytest.raises(ValueError, match="is not a function of a module that is imported"):
            VocabularyProcessor.restore(str(path))


def test_bytes():
    processor = ByteProcessor(3).fit(["a"])
    rows = list(processor.fit_transform(["é!", b"abcd"]))
    assert [row.tolist() for row in rows] == [[195, 169, 33], [97, 98, 99]] and rows[0].dtype == np.uint8
    assert list(processor.reverse([[104, 105, 0]])) == ["hi"]
