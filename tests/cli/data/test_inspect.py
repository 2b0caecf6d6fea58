"""`moxing data inspect`."""

import json
import os

from flower_folder import encoded, put, run
from PIL import Image


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
    assert "Training would reject this: " in out and "'empty'" in out
    assert err == "moxing data inspect: training would reject this dataset\n"
    assert not os.path.exists("sheet.png")
