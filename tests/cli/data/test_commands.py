"""`moxing data`: what the commands print, their exit codes, and silence where there is nothing to say."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from flower_folder import encoded, put, run
from PIL import Image

from helpers.launcher import warm_moxing
from moxing.cli import command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("split", "nowhere", "parts"), r"moxing data split: error: SRC='.*nowhere' does not exist"),
        (("split", "flowers", "parts", "--spec", "train:0.9,eval:0.9"), "--spec=.* sums to 1.8"),
        (("split", "flowers", "flowers/parts"), "DST='.*' lies in SRC='"),
        (("convert", "nowhere", "out"), r"moxing data convert: error: SRC='.*nowhere' does not exist"),
        (("convert", "flowers", "out", "--shards", "0"), "--shards=0"),
        (("convert", "flowers", "out", "--splits", "train:3"), "--splits=.* sums to 3"),
        (("convert", "flowers", "out", "--resize-short-side", "-3"), "--resize-short-side=-3"),
        (("convert", "flowers", "out", "--max-bad", "many"), "--max-bad='many'"),
        (("convert", "flowers", "s3://bucket/out"), "DST='s3://bucket/out': expected a local directory"),
        (("inspect", "nowhere"), "DIR='.*nowhere' does not exist"),
        (("inspect", "flowers", "--augmentation", "vgg_16"), "pass --sheet FILE.png too"),
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


@pytest.mark.parametrize("command", ["split", "convert", "inspect"])
def test_help_has_an_example_and_the_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"\n  moxing data {command} flowers" in out and "\nexit codes: 0 " in out


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
    from moxing.tensorflow.datasets.tools import conversion

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


@pytest.mark.slow
def test_a_real_process_says_only_what_it_has_to(folder):
    """All bad kinds at once: TensorFlow's own messages about them must not appear."""
    whole = encoded("JPEG", (200, 200))
    put(folder, {
        "roses/empty.jpg": b"", "roses/cut.jpg": whole[: len(whole) // 2], "roses/page.png": b"<html>404</html>",
        "roses/cut.png": encoded("PNG")[:400], "roses/cut.gif": encoded("GIF")[:300],
        "roses/cut.bmp": encoded("BMP")[:99], "roses/cut.webp": encoded("WEBP")[:99],
        "roses/head.jpg": whole[:20], "roses/scan.tif": encoded("TIFF"),
    })  # fmt: skip
    result = warm_moxing("data", "convert", "flowers", "out", "--max-bad", "9")
    assert (result.returncode, result.stderr) == (0, "")
    assert "out: 20 records in 1 files" in result.stdout
    bad = [json.loads(line) for line in (folder.parent / "out" / "bad_samples.jsonl").read_text().splitlines()]
    assert len(bad) == 9
    result = warm_moxing(
        "data", "inspect", "flowers", "--full", "--sheet", "sheet.png", "--augmentation", "inception_v1"
    )
    assert result.returncode == 1
    assert "Bad:     9 of 29" in result.stdout and "Samples as training sees them: sheet.png" in result.stdout
    # Bad samples that the picture met are told as warnings of the command.
    lines = result.stderr.splitlines()
    assert all(line.startswith("moxing data inspect: warning: Skipped a bad sample: ") for line in lines), lines
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
