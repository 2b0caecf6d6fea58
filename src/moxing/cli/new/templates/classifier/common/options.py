"""The command line of train.py, checked before the training starts, and what log_dir remembers of it."""

import argparse
import json
import math
import os
import sys
from typing import NamedTuple

import moxing.tensorflow as mox

import scopes
from data import Photos, load_photos
from model import Model


class Plan(NamedTuple):
    """What train.py does.

    Attributes:
      photos: the photos.
      model: the model.
      trained: the names of the variables to train.
      restored: the names of the variables to read from --checkpoint_path.
      steps: the step to train to.
    """

    photos: Photos
    model: Model
    trained: list
    restored: list
    steps: int


def parse(words=None):
    """Returns the options of train.py.

    Args:
      words: the command line. Default: that of the process.
    """
    parser = argparse.ArgumentParser(description="Trains a classifier on a folder of photos, one folder per class.")
    data = parser.add_argument_group("data")
    data.add_argument("--data_dir", required=True, help="the folder: data_dir/<class>/<photo>")
    data.add_argument("--log_dir", required=True, help="directory for checkpoints and curves; resumed if there are any")
    data.add_argument("--validation_fraction", type=_fraction, default=0.2, help="share not trained on (%(default)s)")
    data.add_argument("--image_size", type=_count, help="height and width (as the network was published)")
    network = parser.add_argument_group("network")
    network.add_argument("--model_name", default="resnet_v1_50", help="`moxing zoo` lists all (%(default)s)")
    network.add_argument("--checkpoint_path", help="start from these weights")
    for name, meaning in (
        ("checkpoint_exclude_scopes", "do not read these scopes from checkpoint_path, comma-separated"),
        ("trainable_scopes", "train these scopes only, comma-separated"),
        ("freeze_scopes", "do not train these scopes, comma-separated"),
    ):
        network.add_argument(f"--{name}", type=scopes.split_scopes, default=[], metavar="A,B", help=meaning)
    network.add_argument(
        "--batch_norm",
        choices=["keep", "update"],
        help="averages of batch normalisation: keep those of checkpoint_path (default with it), or update them",
    )
    training = parser.add_argument_group("training")
    training.add_argument("--num_epochs", type=_positive, default=10, help="passes over the photos (%(default)s)")
    training.add_argument("--batch_size", type=_count, default=32, help="photos per step (%(default)s)")
    training.add_argument("--learning_rate", type=_positive, default=0.01, help="at the start (%(default)s)")
    training.add_argument("--decay_steps", type=_count, default=1000, help="steps between decays (%(default)s)")
    training.add_argument("--decay_rate", type=_factor, default=0.94, help="factor of a decay (%(default)s)")
    training.add_argument("--keep_checkpoint_every_n_hours", type=_positive, help="keep one for good every n hours")
    return parser.parse_args(words)


def make_plan(options, batches_per_step=1):
    """Returns what to do. A wrong option ends the program with a message; nothing has been written then.

    Args:
      options: the options of train.py.
      batches_per_step: the number of GPUs that train together, each on a batch of its own.
    """
    try:
        return _make_plan(options, batches_per_step)
    except (ValueError, OSError) as error:
        fail(error)


def fail(message):
    """Ends the program with a message about its options."""
    print(f"{os.path.basename(sys.argv[0])}: error: {message}", file=sys.stderr)
    raise SystemExit(2)


def _make_plan(options, batches_per_step):
    photos = load_photos(options.data_dir, options.validation_fraction)
    batch_norm = options.batch_norm or ("keep" if options.checkpoint_path else "update")
    if batch_norm == "keep" and not options.checkpoint_path:
        raise ValueError("--batch_norm=keep needs --checkpoint_path.")
    num_classes = len(photos.class_names)
    model = Model(options.model_name, num_classes, options.image_size, keep_batch_norm=batch_norm == "keep")
    shapes, trainable = model.variables()
    trained = scopes.trained_variables(trainable, options.trainable_scopes, options.freeze_scopes)
    restored = []
    if options.checkpoint_path:
        restored = scopes.restored_variables(shapes, options.checkpoint_path, options.checkpoint_exclude_scopes)
    elif options.checkpoint_exclude_scopes:
        raise ValueError("--checkpoint_exclude_scopes needs --checkpoint_path.")
    settings = {"model_name": model.name, "image_size": model.image_size, "class_names": photos.class_names}
    _check_resumed(options.log_dir, settings)
    mox.file.make_dirs(options.log_dir)
    mox.file.write(_settings_file(options.log_dir), json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    labels = "".join(f"{number}: {name}\n" for number, name in enumerate(photos.class_names))
    mox.file.write(f"{options.log_dir}/labels.txt", labels)
    steps = math.ceil(options.num_epochs * len(photos.training.paths) / (options.batch_size * batches_per_step))
    if not restored and steps < 5000 and any(name.endswith("/moving_mean") for name in shapes):
        print(
            f"train.py: warning: {steps} steps are few to train {model.name} from new weights: validation uses the "
            "averages of batch normalisation, which take thousands of steps. Better start from --checkpoint_path.",
            file=sys.stderr,
        )
    return Plan(photos, model, trained, restored, steps)


def _check_resumed(log_dir, settings):
    if not mox.file.exists(f"{log_dir}/checkpoint") or not mox.file.exists(_settings_file(log_dir)):
        return
    for name, value in json.loads(mox.file.read(_settings_file(log_dir))).items():
        if settings.get(name) != value:
            raise ValueError(
                f"--log_dir={log_dir} was trained with {name}={value}, now it is {settings.get(name)}. "
                "Use another --log_dir."
            )


def trained_model(log_dir):
    """Returns the model that train.py has trained in `log_dir`."""
    if not mox.file.exists(_settings_file(log_dir)):
        fail(f"--log_dir={log_dir}: train.py has trained nothing there.")
    settings = json.loads(mox.file.read(_settings_file(log_dir)))
    return Model(settings["model_name"], len(settings["class_names"]), settings["image_size"])


def _settings_file(log_dir):
    return f"{log_dir}/settings.json"


def _count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1")
    return int(text)


def _positive(text):
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return number


def _fraction(text):
    number = _number(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number between 0 and 1, such as 0.2")
    return number


def _factor(text):
    return 1.0 if _number(text) == 1 else _fraction(text)


def _number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan
