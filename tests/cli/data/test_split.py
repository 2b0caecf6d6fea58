"""`moxing data split`."""

import pytest
from flower_folder import run


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


@pytest.mark.parametrize("text", ["train", "train:x", "train:0.5,train:0.5", ":1", ""])
def test_a_spec_that_cannot_be_read(folder, capsys, text):
    with pytest.raises(SystemExit) as ended:
        run("split", "flowers", "parts", f"--spec={text}")
    assert ended.value.code == 2
    assert "such as train:0.9,eval:0.1" in capsys.readouterr().err
