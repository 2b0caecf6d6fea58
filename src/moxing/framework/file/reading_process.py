"""A process that reads files for another one: `python -m moxing.framework.file.reading_process`.

It is asked on its standard input and answers on its standard output, both in little-endian binary:

    question: number of paths (uint32), then for every path its length (uint32) and bytes
    answer:   for every path the length of the content (int64, -1 where it cannot be read) and the content

It ends when its input ends, and so never outlives the process that started it.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from typing import BinaryIO

from moxing.framework.file.content import read

COUNT = struct.Struct("<I")
LENGTH = struct.Struct("<q")


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answers until the questions end.

    Example:
      >>> import io
      >>> question = COUNT.pack(1) + COUNT.pack(4) + b'none'
      >>> answers = io.BytesIO()
      >>> serve(io.BytesIO(question), answers)
      >>> LENGTH.unpack(answers.getvalue())
      (-1,)
    """
    # The whole question first: who asks does not listen before it is out.
    while (paths := _question(questions)) is not None:
        for path in paths:
            content = _content(path)
            answers.write(LENGTH.pack(-1 if content is None else len(content)))
            answers.write(content or b"")
        answers.flush()


def _question(questions: BinaryIO) -> list[bytes] | None:
    """The paths of the next question; None where the questions end, if need be in the middle of one."""
    if (count := _number(questions)) is None:
        return None
    paths = []
    for _ in range(count):
        length = _number(questions)
        if length is None or len(path := questions.read(length)) < length:
            return None
        paths.append(path)
    return paths


def _number(questions: BinaryIO) -> int | None:
    packed = questions.read(COUNT.size)
    return int(COUNT.unpack(packed)[0]) if len(packed) == COUNT.size else None


def _content(path: bytes) -> bytes | None:
    try:
        return bytes(read(os.fsdecode(path), binary=True))
    except (OSError, ValueError):  # ValueError: what cannot be a path
        return None


def main() -> None:
    """Serves the process that started this one."""
    # An interrupt from the keyboard is for that process, which may want to read on for a while.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        # It is gone. Python would complain once more when it flushes what is left.
        os._exit(0)


if __name__ == "__main__":
    main()
