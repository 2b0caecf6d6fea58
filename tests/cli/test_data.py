"""`moxing data`: what the commands print, their exit codes, and silence where there is nothing to say."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from moxing.cli import command, main

RNG = np.random.default_rng(3)


def encoded(kind="PNG", size=(30, 20)):
    stream = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (size[1], size[0], 3), np.uint8)).save(stream, kind)
    return stream.getvalue()


def put(root, files):
    for name, content in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """`flowers` in the current directory: 2 classes of 10 images."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "flowers", {f"{name}/{i}.jpg": encoded("JPEG") for name in ("daisy", "roses") for i in range(10)})
    return tmp_path / "flowers"


def run(*words, code=0):
    assert main.main(["data", *words]) == code


def moxing(*words):
    return subprocess.run([sys.executable, "-m", "moxing", "data", *words], capture_output=True, text=True, timeout=240)


def test_split_prints_a_table(folder, capsys):
    run("split", "flowers", "parts", "--spec", "train:0.8,eval:0.2")
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "parts: 20 files in 2 splits",
        "  class  train  eval",
        "  daisy      8     2",
        "  roses      8     2",
        "  total     16     4",
    ]
    assert len(list((folder.parent / "parts" / "eval" / "roses").iterdir())) == 2
    run("split", "flowers", "parts", "--spec", "train:0.8,eval:0.2", code=2)
    assert "already: --overwrite replaces them." in capsys.readouterr().err
    run("split", "flowers", "parts", "--overwrite")
    assert "  total     18     2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("split", "nowhere", "parts"), r"moxing data split: error: SRC='.*nowhere' does not exist"),
        (("split", "flowers", "parts", "--spec", "train:0.9,eval:0.9"), "--spec=.* adds up to 1.8"),
        (("split", "flowers", "flowers/parts"), "DST='.*' lies in SRC='"),
        (("convert", "nowhere", "out"), r"moxing data convert: error: SRC='.*nowhere' does not exist"),
        (("convert", "flowers", "out", "--shards", "0"), "--shards=0"),
        (("convert", "flowers", "out", "--splits", "train:3"), "--splits=.* adds up to 3"),
        (("convert", "flowers", "out", "--resize-short-side", "-3"), "--resize-short-side=-3"),
        (("convert", "flowers", "out", "--max-bad", "many"), "--max-bad='many'"),
        (("convert", "flowers", "s3://bucket/out"), "DST='s3://bucket/out': expected a local directory"),
        (("inspect", "nowhere"), "DIR='.*nowhere' does not exist"),
        (("inspect", "flowers", "--augmentation", "vgg_16"), "give --sheet FILE.png too"),
        (("inspect", "flowers", "--sheet", "a.png", "--augmentation", "resnt_v1_50"), "--augmentation='resnt_v1_50'"),
        (("inspect", "flowers", "--sheet", "a.png", "--augmentation", "vgg_16", "--size", "999"), "--size=999"),
        (("inspect", "flowers", "--sheet", "a.png", "--samples", "0"), "--samples=0"),
        (("inspect", "flowers", "--sheet", "a.xyz"), "--sheet=a.xyz: expected the name of an image file"),
        (("inspect", "flowers", "--sheet", "no/such/a.png"), "there is no directory"),
        (("inspect", "flowers", "--pattern", "*.tfrecord"), "no file in DIR='flowers' matches"),
    ],
)
def test_errors_are_one_line(folder, capsys, words, message):
    import re

    run(*words, code=2)
    err = capsys.readouterr().err
    assert re.search(message, err), err
    assert err.count("\n") == 1 and err.startswith(f"moxing data {words[0]}: error: ")


@pytest.mark.parametrize("text", ["train", "train:x", "train:0.5,train:0.5", ":1", ""])
def test_a_spec_that_cannot_be_read(folder, capsys, text):
    with pytest.raises(SystemExit) as ended:
        run("split", "flowers", "parts", f"--spec={text}")
    assert ended.value.code == 2
    assert "such as train:0.9,eval:0.1" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["split", "convert", "inspect"])
def test_help_has_an_example_and_the_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"\n  moxing data {command} flowers" in out and "\nexit codes: 0 " in out


def test_convert_prints_a_summary(folder, capsys):
    put(folder, {"daisy/a.gif": encoded("GIF"), "roses/b.webp": encoded("WEBP"), "roses/bad.jpg": b""})
    run("convert", "flowers", "out", "--splits", "train:0.8,eval:0.2", "--prefix", "f", "--shards", "2")
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "out: 22 records in 4 files"
    assert [line.split()[:3] for line in out[1:4]] == [
        ["split", "records", "files"], [*out[2].split()[:2], "2"], ["eval", out[3].split()[1], "2"],
    ]  # fmt: skip
    assert "Stored as they are: 20 JPEG." in out
    assert "Converted: 1 GIF to PNG, 1 WebP to PNG." in out
    assert f"  {folder}/roses/bad.jpg: empty file" in out
    assert out[-1] == "To read them: mox.ImageClassificationTFRecordMetadata('out', 'f_train_*')"
    run("convert", "flowers", "out", "--splits", "train:0.8,eval:0.2", "--prefix", "f", "--shards", "2")
    assert "22 records in 4 files (4 were complete from an earlier call)" in capsys.readouterr().out
    run("convert", "flowers", "out", code=2)
    assert "--overwrite" in capsys.readouterr().err


def test_too_many_bad_images_are_exit_code_1_after_everything_is_written(folder, capsys):
    put(folder, {"roses/bad.jpg": b"", "roses/worse.jpg": b"text"})
    run("convert", "flowers", "out", code=1)
    out, err = capsys.readouterr()
    assert err == (
        "moxing data convert: 2 of 22 images are bad, --max-bad=0.1% allows 1. "
        "The records of the others are complete.\n"
    )
    assert "out: 20 records in 1 files" in out
    assert len((folder.parent / "out" / "bad_samples.jsonl").read_text().splitlines()) == 2
    run("convert", "flowers", "out", "--max_bad", "2")
    run("convert", "flowers", "out", "--max-bad", "10%")
    run("convert", "flowers", "out", "--max-bad", "0", code=1)


def test_inspect_prints_a_report(folder, capsys):
    put(folder, {"roses/bad.jpg": b"", "roses/notes.txt": b"", "roses/a.gif": encoded("GIF", (50, 40))})
    run("inspect", "flowers", code=1)
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        f"{folder}: image folder, 22 samples in 2 classes",
        f"     0: daisy  10  {'█' * 25}",
        f"     1: roses  12  {'█' * 30}",
        "Formats: 20 JPEG, 1 GIF",
        "Width:   30 to 50 pixels, median 30",
        "Height:  20 to 40 pixels, median 20",
        "Ignored: 1 .txt",
        "Bad:     1 of 22 (headers were read; --full decodes every image)",
        f"  {folder}/roses/bad.jpg: empty file",
        "For a picture of samples as training sees them: --sheet FILE.png [--augmentation resnet_v1_50]",
    ]


def test_inspect_as_json_and_a_sheet(folder, capsys):
    run("inspect", "flowers", "--json", "--full", "--sheet", "sheet.png", "--samples", "4", "--size", "100")
    report = json.loads(capsys.readouterr().out)
    assert (report["total"], report["decoded"], report["bad"]) == (20, True, [])
    with Image.open("sheet.png") as sheet:
        assert sheet.size == (3 * 106 + 6, 2 * 124 + 6)


def test_a_folder_that_training_refuses(folder, capsys):
    os.mkdir(folder / "empty")
    run("inspect", "flowers", "--sheet", "sheet.png", code=1)
    out, err = capsys.readouterr()
    assert "Training would refuse this: " in out and "'empty'" in out
    assert err == "moxing data inspect: training would refuse this data set\n"
    assert not os.path.exists("sheet.png")


def test_warnings_are_lines_of_the_command(folder, capsys):
    put(folder, {"stray.jpg": encoded("JPEG")})
    run("convert", "flowers", "out")
    err = capsys.readouterr().err
    assert err.startswith("moxing data convert: warning: 1 images lie in SRC=") and err.count("\n") == 1


def test_names_that_are_no_text_can_be_printed(folder, capsys):
    with open(os.fsencode(folder) + b"/roses/\xff.jpg", "wb"):
        pass
    run("inspect", "flowers", code=1)
    run("convert", "flowers", "out")
    assert capsys.readouterr().out.count(r"/roses/\udcff.jpg: empty file") == 2


def test_an_interruption_is_no_traceback(folder, capsys, monkeypatch):
    from moxing.tensorflow.datasets.tfrecord import conversion

    def stop(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "convert_image_folder", stop)
    run("convert", "flowers", "out", code=130)
    assert capsys.readouterr().err == "moxing data convert: interrupted\n"


def test_a_directory_that_cannot_be_written(folder, capsys):
    run("convert", "flowers", "/proc/no", code=2)
    assert capsys.readouterr().err == "moxing data convert: error: /proc/no: No such file or directory\n"


def test_translation_leaves_quotes_alone():
    table = {"src_dir": "SRC", "size=": "--size="}
    assert command.translate("src_dir/<class>, 'src_dir': its size is size=3", table) == (
        "SRC/<class>, 'src_dir': its size is --size=3"
    )


def test_a_real_process_says_only_what_it_has_to(folder):
    """All bad kinds at once: TensorFlow's own messages about them must not appear."""
    whole = encoded("JPEG", (200, 200))
    put(folder, {
        "roses/empty.jpg": b"", "roses/cut.jpg": whole[: len(whole) // 2], "roses/page.png": b"<html>404</html>",
        "roses/cut.png": encoded("PNG")[:400], "roses/cut.gif": encoded("GIF")[:300],
        "roses/cut.bmp": encoded("BMP")[:99], "roses/cut.webp": encoded("WEBP")[:99],
        "roses/head.jpg": whole[:20], "roses/scan.tif": encoded("TIFF"),
    })  # fmt: skip
    result = moxing("convert", "flowers", "out", "--max-bad", "9")
    assert (result.returncode, result.stderr) == (0, "")
    assert "out: 20 records in 1 files" in result.stdout
    bad = [json.loads(line) for line in (folder.parent / "out" / "bad_samples.jsonl").read_text().splitlines()]
    assert len(bad) == 9
    result = moxing("inspect", "flowers", "--full", "--sheet", "sheet.png", "--augmentation", "inception_v1")
    assert result.returncode == 1
    assert "Bad:     9 of 29" in result.stdout and "Samples as training sees them: sheet.png" in result.stdout
    # Bad samples that the picture met are told as warnings of the command.
    lines = result.stderr.splitlines()
    assert all(line.startswith("moxing data inspect: warning: Left out a bad sample: ") for line in lines), lines
    with Image.open("sheet.png") as sheet:
        assert sheet.width == 6 * 230 + 6
        columns = np.asarray(sheet, np.float64)[6:230]
        assert all(columns[:, 6 + i * 230 : 230 + i * 230].std() > 5 for i in range(6))


def test_the_command_line_stays_light():
    code = (
        "import sys\nfrom moxing.cli import main\n"
        "try: main.main(['data', 'inspect', '--help'])\nexcept SystemExit: pass\n"
        "print('tensorflow' in sys.modules, 'numpy' in sys.modules, 'PIL' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False False"
