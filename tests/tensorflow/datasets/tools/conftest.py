"""Folders for the tests of the tools."""

from __future__ import annotations

import pytest
from colour_folders import COLOURS, textured
from split_folders import put
from tool_images import encoded, write_files


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "data"
    for name, colour in COLOURS.items():
        write_files(root, {f"{name}/{i}.png": encoded(textured(colour, (60 + i, 40))) for i in range(4)})
    return root


@pytest.fixture
def bad_folder(folder):
    whole = encoded(textured((9, 9, 9), (200, 200)), "JPEG")
    write_files(folder, {
        "red/cut.jpg": whole[: len(whole) // 2], "red/empty.jpg": b"", "blue/page.png": b"<html>",
        "blue/notes.txt": b"", "green/anim.gif": encoded(textured((1, 2, 3)), "GIF"),
        "green/late header.jpg": whole[:2] + (b"\xff\xe1\xff\xff" + bytes(65533)) * 2 + whole[2:], "stray.jpg": whole,
    })  # fmt: skip
    return folder


@pytest.fixture
def src(tmp_path):
    root = tmp_path / "src"
    put(root, *(f"a/{i}.jpg" for i in range(50)), *(f"b/sub/{i} 深.png" for i in range(20)), "c/1", "c/2.JPG")
    return root
