"""The written classifier, used as its README says: train, resume, export, predict."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf
from coloured_photos import SMALL, draw
from PIL import Image

import moxing.tensorflow as mox
from helpers.launcher import warm_moxing
from helpers.warm import Program, Surroundings
from helpers.warm import run as run_warm
from moxing.cli.new.project import KINDS, write_project

BASES = KINDS["classifier"]


@pytest.fixture(params=BASES)
def base(request):
    return request.param


@pytest.fixture
def classifier(tmp_path, base):
    """The directory of a new project."""
    write_project(str(tmp_path / "classifier"), "classifier", base)
    return tmp_path / "classifier"


def run(directory, script, *words):
    return warm_moxing("run", script, *words, cwd=directory)


def output_of(directory, script, *words):
    done = run(directory, script, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def saved(log_dir, name):
    return tf.train.load_checkpoint(str(log_dir)).get_tensor(name)


def tags(log_dir):
    """The tags of all summaries of a training."""
    found = set()
    for path in log_dir.glob("events.out.tfevents.*"):
        for event in tf.train.summary_iterator(str(path)):
            found |= {value.tag for value in event.summary.value}
    return found


def rates(log_dir):
    """The learning rates that a training has written, by step."""
    events = [event for path in log_dir.glob("events*") for event in tf.train.summary_iterator(str(path))]
    found = [(event.step, value) for event in events for value in event.summary.value if value.tag == "learning_rate"]
    return [value.simple_value for _, value in sorted(found, key=lambda pair: pair[0])]


@pytest.mark.slow
def test_train_resume_export_predict(classifier, base, tmp_path):
    photos = draw(tmp_path / "photos")
    words = ("--data_dir", "../photos", "--log_dir", "log", *SMALL, "--num_epochs")
    printed, _ = output_of(classifier, "train.py", *words, 1)
    assert re.fullmatch(r"step 3: accuracy [01]\.\d{3} on 6 validation photos\n", printed)
    printed, log = output_of(classifier, "train.py", *words, 10)
    assert printed == "step 30: accuracy 1.000 on 6 validation photos\n"
    # It went on where it was.
    assert "log/model.ckpt-3" in log
    assert not re.search(r"global step: [012]\)|step = [012] ?$", log, flags=re.MULTILINE)
    assert (classifier / "log" / "labels.txt").read_text() == "0: blue\n1: green\n2: red\n"
    expected = {"accuracy", "learning_rate"} | (
        {"gradient_norm"} if base == "mox" else {"gradients/CifarNet/conv1/weights"}
    )
    assert expected <= tags(classifier / "log")

    printed, _ = output_of(classifier, "export.py", "--log_dir", "log")
    version = "1" if base == "mox" else r"\d{10}"
    exported = re.fullmatch(rf"exported step 30 to (log/export/servo/{version})\n", printed)[1]
    labels = (classifier / exported / "assets.extra" / "labels.txt").read_text()
    assert labels == "0: blue\n1: green\n2: red\n"

    Image.open(photos / "green" / "3.jpg").save(tmp_path / "green.webp", lossless=True)
    shown = [f"../photos/{name}" for name in ("red/1.jpg", "blue/2.jpg")] + ["../green.webp"]
    printed, _ = output_of(classifier, "predict.py", "--model_dir", "log/export/servo", *shown)
    for name, line, photo in zip(("red", "blue", "green"), printed.splitlines(), shown, strict=True):
        found = re.fullmatch(rf"{re.escape(photo)}: {name} (\d+\.\d)%", line)
        assert found and float(found[1]) > 50
    # The server's interface: encoded photos, any number of them.
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["serve"], str(classifier / exported))
        signature = model.signature_def["serving_default"]
        assert set(signature.outputs) == {"class", "probabilities"}
        encoded = [path.read_bytes() for path in sorted(photos.glob("*/*.jpg"))]
        fetches = {name: info.name for name, info in signature.outputs.items()}
        outputs = session.run(fetches, {signature.inputs["image_bytes"].name: encoded})
    assert outputs["class"].tolist() == [0] * 10 + [1] * 10 + [2] * 10
    assert outputs["probabilities"].sum(axis=1) == pytest.approx([1.0] * 30, abs=1e-5)


@pytest.mark.slow
def test_fine_tune(classifier, tmp_path):
    """Excluded, trained and frozen scopes: from a checkpoint of three classes to two others."""
    draw(tmp_path / "photos")
    draw(tmp_path / "two", names=("blue", "red"))
    output_of(classifier, "train.py", "--data_dir", "../photos", "--log_dir", "three", *SMALL, "--num_epochs", 10)
    words = (
        "--data_dir",
        "../two",
        *SMALL,
        "--checkpoint_path",
        "three",
        "--checkpoint_exclude_scopes",
        "CifarNet/logits",
    )
    printed, _ = output_of(
        classifier, "train.py", *words, "--log_dir", "two", "--trainable_scopes", "CifarNet/logits", "--num_epochs", 8
    )
    # The steps are counted from 0.
    assert printed == "step 16: accuracy 1.000 on 4 validation photos\n"
    before, after = (saved(classifier / log_dir, "CifarNet/conv1/weights") for log_dir in ("three", "two"))
    assert (before == after).all()
    assert saved(classifier / "two", "CifarNet/logits/weights").shape == (192, 2)

    output_of(
        classifier, "train.py", *words, "--log_dir", "frozen", "--freeze_scopes", "CifarNet/conv1", "--num_epochs", 1
    )
    names = ("CifarNet/conv1/weights", "CifarNet/conv2/weights")
    same = [(saved(classifier / "three", name) == saved(classifier / "frozen", name)).all() for name in names]
    assert same == [True, False]


@pytest.mark.slow
def test_batch_norm(classifier, tmp_path):
    """Averages of a checkpoint are kept, or updated on request. A short training from new weights is warned of."""
    draw(tmp_path / "photos", 4)
    words = ("--data_dir", "../photos", "--model_name", "resnet_v1_20", "--batch_size", "3", "--num_epochs", "1")
    _, log = output_of(classifier, "train.py", *words, "--log_dir", "new")
    assert "train.py: warning: 3 steps are few to train resnet_v1_20 from new weights" in log
    # With averages of three steps, larger steps diverge.
    words += ("--checkpoint_path", "new", "--learning_rate", "1e-9", "--log_dir")
    output_of(classifier, "train.py", *words, "kept")
    _, log = output_of(classifier, "train.py", *words, "updated", "--batch_norm", "update")
    assert "warning: 3 steps" not in log
    first = next(name for name, _ in tf.train.list_variables(str(classifier / "new")) if name.endswith("/moving_mean"))
    before = saved(classifier / "new", first)
    assert (saved(classifier / "kept", first) == before).all()
    assert (saved(classifier / "updated", first) != before).any()


@pytest.mark.slow
def test_the_learning_rate_decays(classifier, tmp_path):
    draw(tmp_path / "photos")
    words = ("--data_dir", "../photos", "--log_dir", "log", *SMALL, "--learning_rate", "0.004")
    words += ("--decay_steps", "50", "--decay_rate", "0.5", "--keep_checkpoint_every_n_hours", "3")
    _, log = output_of(classifier, "train.py", *words, "--batch_size", "2", "--num_epochs", "8.5")
    # Summaries are written every 100 steps.
    assert rates(classifier / "log") == pytest.approx([0.004, 0.001])
    state = json.loads((classifier / "log" / "model.ckpt-102.moxing.json").read_text())["hooks"]
    assert "'_keep_checkpoint_every_n_hours': 3.0" in log or state["moxing/keep_every_n_hours"]["due"] > 0


#: What is wrong, and what train.py says.
WRONG = [
    ("--data_dir ../no", r"--data_dir='.*/no' does not exist: expected a directory"),
    ("--data_dir ../empty", r"--data_dir='.*/empty' has no images"),
    (
        "--data_dir ../one",
        r"--data_dir=../one: found one class only \(red\); expected a folder for each of two or more",
    ),
    ("--data_dir ../few", r"--data_dir=../few: one photo only in blue, red; a class needs two or more"),
    ("--model_name resnet50", r"--model_name=resnet50: no such network; did you mean 'resnet_v1_50'"),
    ("--model_name vgg_16 --image_size 32", r"--image_size=32: vgg_16 .* need at least 224 x 224 pixels"),
    (
        "--freeze_scopes CifarNet/convol1",
        r"--freeze_scopes: no variable is in the scope 'CifarNet/convol1'; .* CifarNet/conv1",
    ),
    ("--trainable_scopes resnet", r"--trainable_scopes: no variable is in the scope 'resnet'"),
    ("--trainable_scopes CifarNet --freeze_scopes CifarNet", r"leave no variable to train"),
    ("--checkpoint_exclude_scopes CifarNet/logits", r"--checkpoint_exclude_scopes needs --checkpoint_path"),
    ("--checkpoint_path ../no", r"--checkpoint_path=../no cannot be read: "),
    ("--checkpoint_path ../empty", r"--checkpoint_path=../empty cannot be read: there is no checkpoint"),
    (
        "--checkpoint_path ../other/model.ckpt",
        r"CifarNet/logits/biases, CifarNet/logits/weights have another shape in --checkpoint_path=../other/model.ckpt. "
        r".*pass --checkpoint_exclude_scopes=CifarNet/logits\n",
    ),
    (
        "--checkpoint_path ../other/model.ckpt --checkpoint_exclude_scopes CifarNet/logit",
        r"--checkpoint_exclude_scopes: no variable is in the scope 'CifarNet/logit'; .* CifarNet/logits",
    ),
    (
        "--model_name lenet --checkpoint_path ../other/model.ckpt",
        r"is of another network: it has CifarNet/conv1/biases",
    ),
    ("--batch_norm keep", r"--batch_norm=keep needs --checkpoint_path"),
    ("--batch_size 0", r"argument --batch_size: '0': expected a whole number from 1"),
    ("--learning_rate fast", r"argument --learning_rate: 'fast': expected a number above 0"),
    ("--validation_fraction 1", r"argument --validation_fraction: '1': expected a number between 0 and 1"),
    ("--modelname lenet", r"unrecognized arguments: --modelname lenet"),
]

ATTEMPTS = """
import json, sys
import options

for words in json.loads(sys.argv[1]):
    try:
        options.make_plan(options.parse(words))
        print("no error", file=sys.stderr)
    except SystemExit as end:
        print(f"exit {end.code}\\n---", file=sys.stderr)
"""


def test_wrong_options_are_found_early(tmp_path):
    """All in one process, since each message is the end of one."""
    write_project(str(tmp_path / "classifier"), "classifier", "mox")
    draw(tmp_path / "photos", 2)
    draw(tmp_path / "one", 2, ("red",))
    draw(tmp_path / "few", 1, ("red", "blue"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    with tf.Graph().as_default(), tf.Session() as session:
        mox.get_model_fn("cifarnet", "TRAIN", 5)(tf.zeros([1, 32, 32, 3]))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "other" / "model.ckpt"))
    lines = [["--data_dir", "../photos", "--log_dir", "log", *SMALL, *words.split()] for words, _ in WRONG]
    program = Program("code", ATTEMPTS, (json.dumps(lines),))
    done = run_warm(program, Surroundings(tmp_path / "classifier"))
    assert done.returncode == 0, done.stderr
    messages = done.stderr.split("---\n")[:-1]
    for (words, expected), message in zip(WRONG, messages, strict=True):
        assert "exit 2" in message, words
        assert re.search(expected, message), (words, message)
    assert not (tmp_path / "classifier" / "log").exists()


@pytest.mark.slow
def test_another_network_in_the_same_log_dir(tmp_path):
    write_project(str(tmp_path / "classifier"), "classifier", "mox")
    draw(tmp_path / "photos", 4)
    words = ("--data_dir", "../photos", "--log_dir", "log", *SMALL, "--num_epochs", "1")
    output_of(tmp_path / "classifier", "train.py", *words)
    done = run(tmp_path / "classifier", "train.py", *words, "--model_name", "lenet")
    assert done.returncode == 2
    assert "--log_dir=log was trained with model_name=cifarnet, now it is lenet. Use another --log_dir." in done.stderr
    shutil.rmtree(tmp_path / "photos" / "green")
    done = run(tmp_path / "classifier", "train.py", *words)
    assert (
        "--log_dir=log was trained with class_names=['blue', 'green', 'red'], now it is ['blue', 'red']" in done.stderr
    )


def test_export_and_predict_say_what_is_missing(classifier, tmp_path):
    done = run(classifier, "export.py", "--log_dir", "log")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "export.py: error: --log_dir=log: train.py has trained nothing there.",
    )
    done = run(classifier, "predict.py", "--model_dir", "log", "photo.jpg")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "predict.py: error: --model_dir=log: there is no exported model. Run export.py first.",
    )


@pytest.mark.slow
def test_photos_that_cannot_be_read(classifier, base, tmp_path):
    """Training skips them, a prediction names them."""
    photos = draw(tmp_path / "photos")
    whole = (photos / "red" / "0.jpg").read_bytes()
    (photos / "red" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    words = (
        "--data_dir",
        "../photos",
        "--log_dir",
        "log",
        *SMALL,
        "--validation_fraction",
        "0.1",
        "--num_epochs",
        "10",
    )
    printed, log = output_of(classifier, "train.py", *words)
    assert re.fullmatch(r"step 35: accuracy 1.000 on 3 validation photos\n", printed)
    assert "cut.jpg" in log
    output_of(classifier, "export.py", "--log_dir", "log")
    (tmp_path / "text.jpg").write_text("no image")
    for name, reason in (
        ("../photos/red/cut.jpg", "cannot be read: "),
        ("../text.jpg", "is not an image."),
        ("../none.jpg", "cannot be read: No such file or directory."),
    ):
        done = run(classifier, "predict.py", "--model_dir", "log/export/servo", "../photos/red/0.jpg", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines()[-1].startswith(f"predict.py: error: {name} {reason}")


def test_an_estimator_reads_local_photos_only(tmp_path):
    write_project(str(tmp_path / "classifier"), "classifier", "estimator")
    done = run(tmp_path / "classifier", "train.py", "--data_dir", "s3://bucket/photos", "--log_dir", "log")
    assert done.returncode == 2
    assert "train.py: error: --data_dir=s3://bucket/photos: expected local photos" in done.stderr


@pytest.mark.slow
def test_its_own_tests_pass(classifier):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=classifier, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.realdata
def test_flowers_from_a_published_checkpoint(classifier, tmp_path, real_data):
    for folder in (path for path in sorted((real_data / "flowers").iterdir()) if path.is_dir()):
        (tmp_path / "flowers" / folder.name).mkdir(parents=True)
        for photo in sorted(folder.iterdir())[:20]:
            shutil.copy(photo, tmp_path / "flowers" / folder.name)
    checkpoint = real_data / "checkpoints" / "resnet_v1_50.ckpt"
    printed, _ = output_of(
        classifier,
        "train.py",
        *("--data_dir", "../flowers", "--log_dir", "log", "--image_size", "128", "--batch_size", "16"),
        *("--checkpoint_path", checkpoint, "--checkpoint_exclude_scopes", "resnet_v1_50/logits"),
        *("--trainable_scopes", "resnet_v1_50/logits", "--num_epochs", "4"),
    )
    step, accuracy = re.fullmatch(r"step (\d+): accuracy (\S+) on 20 validation photos\n", printed).groups()
    assert step == "20" and float(accuracy) >= 0.4  # Chance is 0.2.


@pytest.mark.slow
def test_photos_and_log_dir_on_an_object_store(tmp_path, s3_folder):
    write_project(str(tmp_path / "classifier"), "classifier", "mox")
    mox.file.copy_parallel(str(draw(tmp_path / "photos")), f"{s3_folder}/photos")
    words = ("--data_dir", f"{s3_folder}/photos", "--log_dir", f"{s3_folder}/log", *SMALL, "--num_epochs", "10")
    printed, _ = output_of(tmp_path / "classifier", "train.py", *words)
    assert printed == "step 30: accuracy 1.000 on 6 validation photos\n"
    printed, _ = output_of(tmp_path / "classifier", "export.py", "--log_dir", f"{s3_folder}/log")
    assert printed == f"exported step 30 to {s3_folder}/log/export/servo/1\n"
    mox.file.copy_parallel(f"{s3_folder}/log/export", str(tmp_path / "export"))
    words = ("--model_dir", "../export/servo", "../photos/red/1.jpg")
    assert "../photos/red/1.jpg: red " in output_of(tmp_path / "classifier", "predict.py", *words)[0]


@pytest.mark.slow
def test_two_workers_share_the_epochs(tmp_path):
    write_project(str(tmp_path / "classifier"), "classifier", "mox")
    draw(tmp_path / "photos")
    words = ("train.py", "--data_dir", "../photos", "--log_dir", "log", *SMALL, "--num_epochs", "10")
    done = warm_moxing("run", "--workers", "2", *words, cwd=tmp_path / "classifier")
    assert done.returncode == 0, done.stdout + done.stderr
    # 24 photos ten times, two batches of 8 per step; the chief evaluates.
    assert (done.stdout + done.stderr).count("step 15: accuracy 1.000 on 6 validation photos\n") == 1
