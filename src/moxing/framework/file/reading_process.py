"""A process that reads files for its parent: `python -m moxing.framework.file.reading_process`.

It reads requests from standard input and writes responses to standard output, in little-endian binary:

    request:  number of paths (uint32), then for each path its length (uint32) and bytes
    response: for each path the length of the content (int64, -1 if it cannot be read) and the content

It ends when its input ends, so it never outlives its parent.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from moxing.framework.file.content import read
from moxing.framework.util.child_server import serve_parent

COUNT = struct.Struct("<I")
LENGTH = struct.Struct("<q")


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Serves requests until the input ends.

    Example:
      >>> import io
      >>> request = COUNT.pack(1) + COUNT.pack(4) + b'none'
      >>> responses = io.BytesIO()
      >>> serve(io.BytesIO(request), responses)
      >>> LENGTH.unpack(responses.getvalue())
      (-1,)
    """
    # Read the whole request first: the parent does not read before it has sent all of it.
    while (paths := _read_request(requests)) is not None:
        for path in paths:
            content = _read_file(path)
            responses.write(LENGTH.pack(-1 if content is None else len(content)))
            responses.write(content or b"")
        responses.flush()


def _read_request(requests: BinaryIO) -> list[bytes] | None:
    """Returns the paths of the next request; None if the input ends, also in the middle of a request."""
    if (count := _read_number(requests)) is None:
        return None
    paths = []
    for _ in range(count):
        length = _read_number(requests)
        if length is None or len(path := requests.read(length)) < length:
            return None
        paths.append(path)
    return paths


def _read_number(requests: BinaryIO) -> int | None:
    packed = requests.read(COUNT.size)
    return int(COUNT.unpack(packed)[0]) if len(packed) == COUNT.size else None


def _read_file(path: bytes) -> bytes | None:
    try:
        return bytes(read(os.fsdecode(path), binary=True))
    except (OSError, ValueError):  # ValueError: not a path
        return None


def main() -> None:
    """Serves the parent process."""
    serve_parent(serve)


if __name__ == "__main__":
    main()
