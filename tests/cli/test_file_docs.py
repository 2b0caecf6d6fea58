"""The commands of the guide's section on `moxing file`, run as they stand against a real store."""

import re
import shlex
from pathlib import Path

import pytest

import moxing as mox
from moxing.cli import main
from moxing.framework.file.s3.clients import get_client

DOCS = Path(__file__).parents[2] / "docs"


def commands():
    text = (DOCS / "file.md").read_text(encoding="utf-8")
    return [line for block in re.findall(r"```shell\n(.*?)```", text, flags=re.DOTALL) for line in block.splitlines()]


def test_the_commands_run(s3_folder, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    get_client("s3").create_bucket("my-bucket")
    for name in ("photos/cats/1.jpg", "photos/2.jpg", "photos/notes.txt"):
        mox.file.make_dirs(Path(name).parent)
        mox.file.write(name, name)
    found = commands()
    assert len(found) >= 8
    for line in found:
        program, *words = shlex.split(line)
        assert program == "moxing"
        assert main.main(words) == 0, line
    out, err = capfd.readouterr()
    assert err == ""
    assert "photos/notes.txt" in out
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["1.jpg", "2.jpg"]
    assert not mox.file.exists("s3://my-bucket/photos")


@pytest.mark.parametrize("page", [DOCS / "file.md", DOCS / "zh-CN" / "file.md"], ids=["English", "Chinese"])
@pytest.mark.parametrize("command", ["ls", "cp", "cat", "rm", "du", "sync"])
def test_every_option_is_in_the_table(command, page, capsys):
    """The table has the options of the commands, and no others."""
    with pytest.raises(SystemExit):
        main.main(["file", command, "--help"])
    usage = capsys.readouterr().out.partition("\n\n")[0]
    row = re.search(rf"^\| `{command} (.*?)` \|", page.read_text(encoding="utf-8"), re.MULTILINE).group(1)
    assert set(re.findall(r"(?<=\[)--?[\w-]+", usage)) - {"-h"} == set(re.findall(r"(?<=\[)--?[\w-]+", row))
