"""An object that is large enough for several parts, and the uploads in parts that are under way."""

from __future__ import annotations

import os

from moxing.framework.file.s3.clients import get_client
from moxing.framework.file.s3.http import Request

LARGE = b"".join(os.urandom(4096) * 256 for _ in range(21)) + b"end"


def uploads(s3_folder):
    """The uploads in parts that are under way below a folder."""
    prefix = s3_folder.removeprefix("s3://tests/")
    answer = get_client("s3").send(Request("GET", "tests", query={"uploads": "", "prefix": prefix}))
    return bytes(answer.body).count(b"<Upload>")
