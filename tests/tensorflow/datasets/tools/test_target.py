"""The directory that a tool writes into."""

import pytest
from tool_images import many

from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
from moxing.tensorflow.datasets.tools.target import check_target, local_target, only_process, progress_bar


def test_two_processes_do_not_write_the_same_records(tmp_path):
    many(tmp_path / "src", 6)
    with only_process(str(tmp_path), "writing"):
        with pytest.raises(ValueError, match="another process is writing there"):
            convert_image_folder(tmp_path / "src", tmp_path)


def test_a_target_is_a_local_directory_outside_the_source(tmp_path):
    assert local_target(f"file://{tmp_path}") == str(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file: expected a directory"):
        check_target(str(tmp_path / "src"), str(tmp_path / "file"))
    with pytest.raises(ValueError, match="lies in src_dir"):
        check_target(str(tmp_path), str(tmp_path / "dst"))
    check_target(str(tmp_path / "src"), str(tmp_path / "dst"))


def test_no_bar_without_a_terminal(capsys):
    with progress_bar("split", 2) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")
