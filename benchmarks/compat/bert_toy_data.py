"""Toy data for BERT's programs: a vocabulary, a tiny model, sentences whose label is one word, questions about them.

Every file is the same in every run. A model that has learned the rule is right on all held-out examples.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PLACES = ["attic", "cellar", "garden", "kitchen", "library", "market", "office", "station"]
FILLERS = ["a", "and", "cat", "dog", "house", "in", "is", "man", "near", "red", "sees", "small", "the", "tree", "woman"]
QUESTION = ["where", "key", "?", "."]
#: The label of a sentence is 1 if it has the first word and 0 if it has the second.
GOOD, BAD = "good", "bad"

CONFIG = {
    "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": 32,
    "initializer_range": 0.05,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
}


@dataclass(frozen=True)
class ToyData:
    """The files.

    Attributes:
      folder: contains all of them.
      labels: the labels of the sentences in the classifier's test.tsv.
      answers: the answers to the questions in squad_test.json, by id.
    """

    folder: Path
    labels: list[int]
    answers: dict[str, str]

    def path(self, name: str) -> str:
        return str(self.folder / name)


def write(folder: Path) -> ToyData:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(7)
    vocabulary = [*SPECIAL, *sorted({*PLACES, *FILLERS, *QUESTION, GOOD, BAD})]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "bert_config.json").write_text(json.dumps({**CONFIG, "vocab_size": len(vocabulary)}))
    (folder / "text.txt").write_text(documents(source))
    (folder / "sentences.txt").write_text("the red cat is near the tree\nthe man sees ||| a small dog\n")
    labels = write_classification(folder, source)
    write_questions(folder / "squad_train.json", source, 400)
    return ToyData(folder, labels, write_questions(folder / "squad_test.json", source, 40))


def documents(source: random.Random) -> str:
    """Documents of a few sentences, with an empty line between them."""
    return "\n\n".join("\n".join(sentence(source) + " ." for _ in range(8)) for _ in range(30)) + "\n"


def sentence(source: random.Random, extra: str = "") -> str:
    words = [source.choice(FILLERS) for _ in range(source.randint(4, 9))]
    if extra:
        words.insert(source.randint(0, len(words)), extra)
    return " ".join(words)


def write_classification(folder: Path, source: random.Random) -> list[int]:
    """Write train.tsv, dev.tsv and test.tsv in the form of CoLA. Returns the labels of test.tsv."""
    for name, count in (("train", 640), ("dev", 64)):
        rows = [(label, sentence(source, GOOD if label else BAD)) for label in both(source, count)]
        lines = [f"toy\t{label}\t\t{text}" for label, text in rows]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    labels = both(source, 50)
    lines = [f"{index}\t{sentence(source, GOOD if label else BAD)}" for index, label in enumerate(labels)]
    (folder / "test.tsv").write_text("\n".join(["index\tsentence", *lines]) + "\n")
    return labels


def both(source: random.Random, count: int) -> list[int]:
    """Half of the labels are 1."""
    labels = [index % 2 for index in range(count)]
    source.shuffle(labels)
    return labels


def write_questions(path: Path, source: random.Random, count: int) -> dict[str, str]:
    """Write questions in the form of SQuAD: the answer is the only place in the text."""
    paragraphs, answers = [], {}
    for index in range(count):
        answer = source.choice(PLACES)
        context = sentence(source, answer)
        found = {"answer_start": context.index(answer), "text": answer}
        question = {"id": f"q{index}", "question": "where is the key ?", "answers": [found], "is_impossible": False}
        paragraphs.append({"context": context, "qas": [question]})
        answers[f"q{index}"] = answer
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "toy", "paragraphs": paragraphs}]}))
    return answers
