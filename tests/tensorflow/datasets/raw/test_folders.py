"""Which files an image folder holds, with hostile names and hostile trees."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from moxing.tensorflow.datasets.raw.folders import list_files, list_image_folder

BYTES_NAME = os.fsdecode(b"f\xff\xe9.jpg")


def put(root, *names):
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(os.fsencode(name))


def test_classes_and_files_in_the_order_of_their_names(tmp_path):
    put(
        tmp_path,
        "label_2/b.jpg",
        "label_10/z.jpg",
        "label_10/a/c.jpg",
        "Zebra/1.jpg",
        "label_2/B.jpg",
        "label_2/10.jpg",
    )
    found = list_image_folder(tmp_path)
    assert list(found.classes) == ["Zebra", "label_10", "label_2"]
    assert found.classes["label_10"] == ["a/c.jpg", "z.jpg"]
    assert found.classes["label_2"] == ["10.jpg", "B.jpg", "b.jpg"]
    assert found.base_dir == str(tmp_path)


def test_names_people_and_systems_make(tmp_path):
    names = ["a b.jpg", "深/数 据.PNG", "🌻.jpeg", "no_extension", "md", "-rf", "back\\slash.jpg", "%41#.jpg", "x.jpg.",
             "a\nb.jpg", BYTES_NAME, "x" * 250 + ".jpg", "photo.heic", "scan.TIFF"]  # fmt: skip
    class_name = os.fsdecode(b"cl\xfe \xf0\x9f\x8c\xbb")
    put(tmp_path, *(f"{class_name}/{name}" for name in names))
    found = list_image_folder(tmp_path)
    assert found.classes == {class_name: sorted(names)}
    assert not found.ignored
    for name in found.classes[class_name]:
        path = os.fsencode(os.path.join(found.base_dir, class_name, name))
        with open(path, "rb") as stream:
            assert stream.read() == os.fsencode(f"{class_name}/{name}")


def test_hidden_and_known_names_are_passed_over(tmp_path):
    put(
        tmp_path, "a/1.jpg", "a/.2.jpg", "a/._1.jpg", "a/.cache/3.jpg", ".git/x", "__MACOSX/a/1.jpg", "a/__MACOSX/1.jpg"
    )
    put(tmp_path, "a/Thumbs.db", "a/thumbs.db", "a/desktop.ini", "a/sub/Desktop.ini", "labels.txt", "a/labels.txt")
    found = list_image_folder(tmp_path)
    assert found.classes == {"a": ["1.jpg"]}
    assert found.top_files == []
    assert not found.ignored


def test_other_files_are_ignored_and_counted(tmp_path):
    kinds = ["txt", "md", "json", "csv", "xml", "html", "py", "zip", "tar", "gz", "pdf", "docx"]
    put(tmp_path, "a/1.jpg", "a/NOTES.TXT", "b/sub/x.tar.gz", *(f"a/f.{kind}" for kind in kinds))
    found = list_image_folder(tmp_path)
    assert found.classes == {"a": ["1.jpg"], "b": []}
    assert found.ignored == Counter({f".{kind}": 1 for kind in kinds}) + Counter([".txt", ".gz"])


def test_files_beside_the_class_folders(tmp_path):
    put(tmp_path, "a/1.jpg", "stray.JPG", "b.png", "README", "LICENSE.txt")
    found = list_image_folder(tmp_path)
    assert found.top_files == ["README", "b.png", "stray.JPG"]
    assert found.stray_images == ["b.png", "stray.JPG"]


def test_links_are_followed(tmp_path):
    put(tmp_path, "store/x/1.jpg", "store/2.jpg", "data/a/own.jpg")
    (tmp_path / "data/a/linked").symlink_to(tmp_path / "store/x")
    (tmp_path / "data/a/file.jpg").symlink_to("../../store/2.jpg")
    (tmp_path / "data/b").symlink_to(tmp_path / "store")
    found = list_image_folder(tmp_path / "data")
    assert found.classes == {"a": ["file.jpg", "linked/1.jpg", "own.jpg"], "b": ["2.jpg", "x/1.jpg"]}


def test_link_loops_and_broken_links_end(tmp_path):
    put(tmp_path, "a/1.jpg", "a/deep/2.jpg", "b/3.jpg")
    (tmp_path / "a/deep/up").symlink_to("..")
    (tmp_path / "a/top").symlink_to(tmp_path)
    (tmp_path / "top").symlink_to(tmp_path)
    (tmp_path / "a/to_b").symlink_to(tmp_path / "b")
    (tmp_path / "b/to_a").symlink_to(tmp_path / "a")
    (tmp_path / "a/nothing.jpg").symlink_to("no_such_file")
    (tmp_path / "a/self.jpg").symlink_to("self.jpg")
    os.mkfifo(tmp_path / "a/pipe.jpg")
    found = list_image_folder(tmp_path)
    assert found.classes["a"] == ["1.jpg", "deep/2.jpg", "to_b/3.jpg"]
    assert found.classes["b"] == ["3.jpg", "to_a/1.jpg", "to_a/deep/2.jpg"]
    assert list(found.classes) == ["a", "b"]
    assert found.ignored["broken link"] == 4
    assert found.ignored["special file"] == 2
    assert found.ignored["link to a folder above it"] > 2


def test_a_tree_deeper_than_recursion(tmp_path):
    directory = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=directory)
        inner = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    os.close(os.open("1.jpg", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    os.close(directory)
    assert list_files(str(tmp_path)).files == ["d/" * 1100 + "1.jpg"]
    # Removed by hand: shutil.rmtree, which clears up after the tests, recurses.
    os.remove(f"{tmp_path}/{'d/' * 1100}1.jpg")
    for depth in range(1100, 0, -1):
        os.rmdir(f"{tmp_path}/{'d/' * depth}")


def test_wrong_directories(tmp_path):
    put(tmp_path, "file")
    with pytest.raises(ValueError, match="base_dir='.*/none' does not exist: expected a directory"):
        list_image_folder(tmp_path / "none")
    with pytest.raises(ValueError, match="src='.*/file' is a file"):
        list_image_folder(tmp_path / "file", "src")
    with pytest.raises(TypeError, match="base_dir=None"):
        list_image_folder(None)


def test_file_urls_and_relative_paths(tmp_path, monkeypatch):
    put(tmp_path, "data/a/1.jpg")
    monkeypatch.chdir(tmp_path)
    for url in (f"file://{tmp_path}/data", "data", "./data/", b"data"):
        found = list_image_folder(url)
        assert (found.base_dir, found.classes) == (f"{tmp_path}/data", {"a": ["1.jpg"]})


@pytest.mark.slow
def test_the_same_in_another_locale(tmp_path):
    put(tmp_path, f"é/{BYTES_NAME}", "é/ä.jpg", "z/1.jpg")
    code = (
        "import sys; from moxing.tensorflow.datasets.raw.folders import list_image_folder\n"
        "print(ascii(list_image_folder(sys.argv[1]).classes))"
    )
    environment = {**os.environ, "LC_ALL": "POSIX", "MOX_SILENT_MODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == ascii(list_image_folder(tmp_path).classes)
