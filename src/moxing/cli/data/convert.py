"""`moxing data convert`: writes an image folder as TFRecord files."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from moxing.cli.output import format_counts, megabytes, parse_splits, show, show_table

if TYPE_CHECKING:
    from moxing.tensorflow.datasets.tools.conversion import Conversion

ARGUMENTS = {"split_spec": "--splits"}

_SHOWN_BAD = 20
_EXAMPLE = """
example:
  moxing data convert flowers flowers_records --prefix flowers --splits train:0.9,eval:0.1
    writes flowers_train_00000-of-00001.tfrecord, flowers_eval_00000-of-00001.tfrecord and labels.txt

JPEG and PNG (8 bits, no alpha) are stored unchanged. CMYK JPEG, other PNG, GIF, BMP and WebP become PNG with the
pixels that training sees, because other readers of such records support only JPEG and PNG.

exit codes: 0 done, 1 done but more images are bad than --max-bad allows, 2 an argument or a folder is wrong
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing data`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "convert",
        help="write an image folder as TFRecord files, in the layout of TF-Slim",
        description="Writes SRC/<class>/<image> as TFRecord files in DST, in the layout of TF-Slim, with a labels.txt."
        "\nAfter an interruption the same command resumes.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("src", metavar="SRC", help="folder with one folder of images per class, a path or a url")
    parser.add_argument("dst", metavar="DST", help="local directory for the files")
    parser.add_argument("--shards", type=int, metavar="N", help="files per split (one for about 150 MB of images)")
    parser.add_argument("--prefix", metavar="NAME", help="NAME_train_00000-of-00001.tfrecord, not train-00000-of-00001")
    parser.add_argument(
        "--splits", type=parse_splits, help="splits and their fractions, as train:0.9,eval:0.1 (train:1)"
    )
    parser.add_argument(
        "--resize-short-side", type=int, metavar="N", help="shrink images whose shorter side is above N pixels"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="images to convert in parallel (one per core)")
    parser.add_argument(
        "--max-bad", "--max_bad", default="0.1%", help="allowed bad images: a count or a percentage (%(default)s)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing records in DST")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
    from moxing.tensorflow.datasets.tools.conversion_plan import RecordFiles

    allowed_bad(arguments.max_bad, 0)
    done = convert_image_folder(
        arguments.src,
        arguments.dst,
        split_spec=arguments.splits,
        records=RecordFiles(arguments.shards, arguments.prefix, arguments.resize_short_side),
        threads=arguments.threads,
        overwrite=arguments.overwrite,
    )
    _show_result(arguments.dst, done)
    allowed = allowed_bad(arguments.max_bad, done.images)
    if len(done.bad) <= allowed:
        return 0
    print(
        f"moxing data convert: {len(done.bad)} of {done.images} images are bad, --max-bad={arguments.max_bad} allows "
        f"{allowed}. The records of the others are complete.",
        file=sys.stderr,
    )
    return 1


def allowed_bad(text: str, images: int) -> int:
    """Returns how many bad images `--max-bad` allows among `images`. A percentage allows at least one.

    Example:
      >>> allowed_bad('0.1%', 700), allowed_bad('0.1%', 5000), allowed_bad('0', 700)
      (1, 5, 0)
    """
    try:
        if text.endswith("%") and 0 <= float(text[:-1]) <= 100:
            return max(1, int(images * float(text[:-1]) / 100))
        if not text.endswith("%") and int(text) >= 0:
            return int(text)
    except ValueError:
        pass
    raise ValueError(f"--max-bad={text!r}: expected a count from 0, such as 10, or a percentage such as 0.5%.")


def _show_result(dst: str, done: Conversion) -> None:
    files = sum(map(len, done.shards.values()))
    resumed = f" ({done.resumed} complete from an earlier call)" if done.resumed else ""
    show(f"{dst}: {sum(done.records.values()):,} records in {files} files{resumed}")
    rows = [["split", "records", "files", "size"]]
    for split, names in done.shards.items():
        rows.append([split, f"{done.records[split]:,}", str(len(names)), megabytes(done.bytes[split])])
    show_table(rows)
    if done.kept:
        show(f"Stored unchanged: {format_counts(done.kept)}.")
    if done.changed:
        show(f"Converted: {format_counts(done.changed)}.")
    if done.bad:
        show(f"Skipped, because they cannot be decoded (full list in {os.path.join(dst, 'bad_samples.jsonl')}):")
        for sample in done.bad[:_SHOWN_BAD]:
            show(f"  {sample}")
        if len(done.bad) > _SHOWN_BAD:
            show(f"  and {len(done.bad) - _SHOWN_BAD} more")
    first = next(iter(done.shards.values()))[0]
    show(f"To read them: mox.ImageClassificationTFRecordMetadata({dst!r}, {first[: first.rindex('00000-of')] + '*'!r})")
