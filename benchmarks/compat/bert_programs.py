"""Run BERT's own programs, unchanged, under `moxing run` on toy data.

    git clone https://github.com/google-research/bert CHECKOUT
    python benchmarks/compat/bert_programs.py CHECKOUT

A model of two small layers is pre-trained on random sentences; its features are extracted; a classifier and a reader of
questions are trained from it, killed, and resumed. Both must be right on all held-out examples. Prints a table of the
outcomes; the exit code is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import bert_toy_data
from outcomes import Outcome, Runner, report

PRETRAINING_STEPS = 300
LENGTH = ["--max_seq_length=32"]


class Bert:
    """The programs, with the flags that they share.

    Args:
      checkout: the repository.
      folder: for data, models and logs.
    """

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.folder = folder
        self.data = bert_toy_data.write(folder / "data")
        self.runner = Runner(checkout, folder / "logs")
        self.vocabulary = [f"--vocab_file={self.data.path('vocab.txt')}"]
        self.config = [f"--bert_config_file={self.data.path('bert_config.json')}"]
        self.pretrained = [f"--init_checkpoint={folder / 'pretrained' / f'model.ckpt-{PRETRAINING_STEPS}'}"]

    def create_pretraining_data(self) -> Outcome:
        words = [f"--input_file={self.data.path('text.txt')}", f"--output_file={self.folder / 'records'}"]
        words += ["--max_predictions_per_seq=5", "--dupe_factor=2"]
        done = self.runner.run(["create_pretraining_data.py", *self.vocabulary, *LENGTH, *words])
        found = re.search(r"Wrote (\d+) total instances", done.log)
        return done.require(found is not None, f"{found[1] if found else 0} instances")

    def run_pretraining(self) -> Outcome:
        words = [f"--input_file={self.folder / 'records'}", f"--output_dir={self.folder / 'pretrained'}"]
        words += ["--max_predictions_per_seq=5", "--do_train", "--do_eval", "--max_eval_steps=5"]
        words += ["--train_batch_size=16", "--learning_rate=1e-3", "--num_warmup_steps=10"]
        words += [f"--num_train_steps={PRETRAINING_STEPS}"]
        done = self.runner.run(["run_pretraining.py", *self.config, *LENGTH, *words])
        results = read_results(self.folder / "pretrained" / "eval_results.txt")
        right = results.get("masked_lm_accuracy", 0.0)
        # A guess among 15 words is right in 7 of 100 cases.
        return done.require(right > 0.2, f"masked words right: {right:.2f}")

    def extract_features(self) -> Outcome:
        output = self.folder / "features.jsonl"
        words = [f"--input_file={self.data.path('sentences.txt')}", f"--output_file={output}", "--layers=-1,-2"]
        words += [*self.vocabulary, *self.config, *self.pretrained, *LENGTH, "--batch_size=2"]
        done = self.runner.run(["extract_features.py", *words])
        lines = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
        sizes = {len(layer["values"]) for line in lines for token in line["features"] for layer in token["layers"]}
        return done.require(len(lines) == 2 and sizes == {32}, f"{len(lines)} sentences, vectors of {sizes}")

    def run_classifier(self) -> list[Outcome]:
        folder = self.folder / "classifier"
        words = ["run_classifier.py", "--task_name=cola", f"--data_dir={self.data.folder}", f"--output_dir={folder}"]
        words += [*self.vocabulary, *self.config, *self.pretrained, *LENGTH, "--train_batch_size=16"]
        words += ["--learning_rate=1e-3", "--save_checkpoints_steps=40"]
        killed, done = self.kill_and_resume(words, folder, 8, ["--do_eval", "--do_predict"])
        accuracy = read_results(folder / "eval_results.txt").get("eval_accuracy", 0.0)
        rows = [line.split("\t") for line in read(folder / "test_results.tsv").splitlines()]
        predicted = [int(float(row[1]) > float(row[0])) for row in rows]
        right = sum(one == other for one, other in zip(predicted, self.data.labels, strict=False))
        note = f"accuracy {accuracy:.2f}, predictions right: {right} of {len(self.data.labels)}"
        return [killed, done.require(accuracy == 1.0 and predicted == self.data.labels, note)]

    def run_squad(self) -> list[Outcome]:
        folder = self.folder / "squad"
        words = ["run_squad.py", f"--train_file={self.data.path('squad_train.json')}", f"--output_dir={folder}"]
        words += [f"--predict_file={self.data.path('squad_test.json')}", *self.vocabulary, *self.config]
        words += [*self.pretrained, "--max_seq_length=48", "--max_query_length=16", "--doc_stride=16"]
        words += ["--train_batch_size=16", "--learning_rate=1e-3", "--save_checkpoints_steps=40"]
        killed, done = self.kill_and_resume(words, folder, 12, ["--do_predict"])
        found = json.loads(read(folder / "predictions.json") or "{}")
        right = sum(found.get(key) == answer for key, answer in self.data.answers.items())
        total = len(self.data.answers)
        return [killed, done.require(right == total, f"answers right: {right} of {total}")]

    def kill_and_resume(self, words: list[str], folder: Path, epochs: int, more: list[str]) -> tuple[Outcome, Outcome]:
        """Kill a training that would take long after its second checkpoint, and let a short one resume there."""
        checkpoint = folder / "model.ckpt-40.index"
        killed = self.runner.kill([*words, "--do_train", "--num_train_epochs=10000"], checkpoint.exists)
        done = self.runner.run([*words, "--do_train", f"--num_train_epochs={epochs}", *more])
        found = re.search(r"Restoring parameters from .*model\.ckpt-(\d+)", done.log)
        reached = int(found[1]) if found else 0
        return killed, done.require(reached >= 40, f"resumed at step {reached}")

    def refuse_tpu(self) -> Outcome:
        words = ["--task_name=cola", f"--data_dir={self.data.folder}", f"--output_dir={self.folder / 'tpu'}"]
        words += [*self.vocabulary, *self.config, *LENGTH, "--do_eval", "--use_tpu=true"]
        done = self.runner.run(["run_classifier.py", *words], succeeds=False)
        return done.require("TPUEstimator(use_tpu=True)" in done.log, "--use_tpu is refused with the reason")


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def read_results(path: Path) -> dict[str, float]:
    """Return the numbers of a file with lines `name = number`."""
    return {name: float(value) for name, value in re.findall(r"(\w+) = ([\d.e+-]+)", read(path))}


def run_all(checkout: Path, folder: Path) -> list[Outcome]:
    bert = Bert(checkout, folder)
    outcomes = [bert.create_pretraining_data(), bert.run_pretraining(), bert.extract_features()]
    return [*outcomes, *bert.run_classifier(), *bert.run_squad(), bert.refuse_tpu()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="the repository google-research/bert")
    parser.add_argument("--keep", type=Path, help="a directory for data, models and logs; a temporary one by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        return report(run_all(arguments.checkout.resolve(), folder.resolve()))


if __name__ == "__main__":
    sys.exit(main())
