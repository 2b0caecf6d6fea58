"""Run TF-Slim's own programs, unchanged, under `moxing run` on a toy dataset.

    git clone https://github.com/tensorflow/models CHECKOUT
    python benchmarks/compat/slim_programs.py CHECKOUT/research/slim [--model cifarnet] [--steps 200]

The dataset has the form of TF-Slim's flowers: five classes, which are five colors here. The programs train, are killed
and resume, evaluate and export. Prints a table of the outcomes; the exit code is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import sys
import tempfile
from pathlib import Path

from outcomes import Outcome, Runner, report

CLASSES = {"daisy": (220, 30, 30), "dandelion": (30, 220, 30), "roses": (30, 30, 220)}
CLASSES |= {"sunflowers": (220, 220, 30), "tulips": (30, 220, 220)}
SHARDS = 2


def write_records(folder: Path) -> None:
    """Write JPEG files of one color each as TFRecord files, and labels.txt."""
    import tensorflow as tf
    from PIL import Image

    folder.mkdir(parents=True)
    source = random.Random(5)
    for split, count in (("train", 40), ("validation", 20)):
        for shard in range(SHARDS):
            path = folder / f"flowers_{split}_{shard:05d}-of-{SHARDS:05d}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for number in range(count):
                    label = number % len(CLASSES)
                    base = list(CLASSES.values())[label]
                    color = tuple(min(255, max(0, value + source.randint(-15, 15))) for value in base)
                    image = io.BytesIO()
                    Image.new("RGB", (48, 40), color).save(image, "jpeg")
                    writer.write(example(tf, image.getvalue(), label))
    (folder / "labels.txt").write_text("".join(f"{number}:{name}\n" for number, name in enumerate(CLASSES)))


def example(tf, image: bytes, label: int) -> bytes:  # type: ignore[no-untyped-def]
    texts = {"image/encoded": image, "image/format": b"jpg"}
    numbers = {"image/class/label": label, "image/height": 40, "image/width": 48}
    features = {name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value])) for name, value in texts.items()}
    for name, value in numbers.items():
        features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def run_all(checkout: Path, folder: Path, model: str, steps: int) -> list[Outcome]:
    write_records(folder / "data")
    runner = Runner(checkout, folder / "logs")
    data = ["--dataset_name=flowers", f"--dataset_dir={folder / 'data'}", f"--model_name={model}"]
    train = ["train_image_classifier.py", *data, f"--train_dir={folder / 'train'}", "--batch_size=16"]
    train += ["--optimizer=adam", "--opt_epsilon=1e-8", "--learning_rate=0.001", "--learning_rate_decay_type=fixed"]
    train += ["--save_interval_secs=2", "--clone_on_cpu"]
    saved = folder / "train" / "checkpoint"
    outcomes = [runner.kill([*train, "--max_number_of_steps=1000000"], lambda: checkpoint_step(saved) > 0)]
    reached = checkpoint_step(saved)
    done = runner.run([*train, f"--max_number_of_steps={reached + steps}"])
    resumed = f"model.ckpt-{reached}" in done.log and checkpoint_step(saved) >= reached + steps
    outcomes.append(done.require(resumed, f"resumed at step {reached}, trained to {checkpoint_step(saved)}"))
    test = ["--dataset_split_name=validation", f"--checkpoint_path={folder / 'train'}", "--batch_size=50"]
    done = runner.run(["eval_image_classifier.py", *data, *test, f"--eval_dir={folder / 'eval'}"])
    accuracy = [float(found) for found in re.findall(r"eval/Accuracy\[([\d.]+)\]", done.log)] or [0.0]
    outcomes.append(done.require(accuracy[-1] == 1.0, f"accuracy {accuracy[-1]:.2f}"))
    graph = folder / "graph.pb"
    export = ["export_inference_graph.py", "--dataset_name=flowers", f"--dataset_dir={folder / 'data'}"]
    done = runner.run([*export, f"--model_name={model}", f"--output_file={graph}"])
    size = graph.stat().st_size if graph.exists() else 0
    outcomes.append(done.require(size > 1000, f"a graph of {size} bytes"))
    done = runner.run([*train, "--max_number_of_steps=1000000", "--quantize_delay=0"], succeeds=False)
    refused = "tf.contrib.quantize.create_training_graph is not available" in done.log
    outcomes.append(done.require(refused, "--quantize_delay is refused with the reason"))
    return outcomes


def checkpoint_step(marker: Path) -> int:
    """Return the step of the newest checkpoint; 0 without one."""
    found = re.search(r'model_checkpoint_path: ".*-(\d+)"', marker.read_text()) if marker.exists() else None
    return int(found[1]) if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="the directory research/slim of tensorflow/models")
    parser.add_argument("--model", default="cifarnet", help="a name of TF-Slim's nets_factory")
    parser.add_argument("--steps", type=int, default=200, help="steps after the kill")
    parser.add_argument("--keep", type=Path, help="a directory for data, models and logs; a temporary one by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        return report(run_all(arguments.checkout.resolve(), folder.resolve(), arguments.model, arguments.steps))


if __name__ == "__main__":
    sys.exit(main())
