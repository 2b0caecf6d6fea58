"""`moxing data inspect`: checks a dataset of images and draws samples as training sees them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from moxing.cli.output import format_counts, show

if TYPE_CHECKING:
    from moxing.tensorflow.datasets.tools.inspection import Inspection, Spread

ARGUMENTS = {"name=": "--augmentation="}

_SHOWN_CLASSES, _SHOWN_BAD, _BAR = 40, 20, 30
_EXAMPLE = """
example:
  moxing data inspect flowers --sheet flowers.png --augmentation resnet_v1_50
    reports on the folder and draws 24 images as the training of ResNet-50 sees them

exit codes: 0 no problems, 1 there are bad samples or training would reject the data, 2 an argument is wrong
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing data`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "inspect",
        help="report on an image folder or TFRecord files, and draw samples as training sees them",
        description="Reports classes, formats, sizes and bad samples of an image folder (DIR/<class>/<image>) or of\n"
        "TFRecord files in the layout of TF-Slim. With --sheet it draws samples as training sees them.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "dir", metavar="DIR", help="folder with one folder per class, or directory of TFRecord files; a path or a url"
    )
    parser.add_argument("--pattern", help="pattern of the TFRecord files, such as 'train-*'")
    parser.add_argument("--full", action="store_true", help="decode every image, not only its header")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--sheet", metavar="FILE.png", help="draw samples into this file")
    parser.add_argument("--samples", type=int, default=24, metavar="N", help="number of samples to draw (%(default)s)")
    parser.add_argument(
        "--augmentation", metavar="NAME", help="apply the augmentation of a network, such as resnet_v1_50"
    )
    parser.add_argument("--size", type=int, metavar="N", help="edge of an image in the picture (the network's, or 160)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random samples (%(default)s)")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from moxing.tensorflow.datasets.tools.contact_sheet import make_contact_sheet
    from moxing.tensorflow.datasets.tools.inspection import inspect_dataset

    _check_sheet(arguments)
    found = inspect_dataset(arguments.dir, arguments.pattern, arguments.full)
    if arguments.json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        _show_report(found)
    if found.problems:
        print("moxing data inspect: training would reject this dataset", file=sys.stderr)
    elif arguments.sheet is not None:
        make_contact_sheet(
            arguments.dir, arguments.pattern, arguments.augmentation, arguments.samples, arguments.size, arguments.seed
        ).save(arguments.sheet)
        if not arguments.json:
            show(f"Samples as training sees them: {arguments.sheet}")
    elif not arguments.json:
        show("For a picture of samples as training sees them: --sheet FILE.png [--augmentation resnet_v1_50]")
    return 1 if found.bad or found.problems else 0


def _check_sheet(arguments: argparse.Namespace) -> None:
    """Checks the options of the picture first: inspecting the dataset may take long."""
    from PIL import Image

    from moxing.tensorflow.preprocessing import get_data_augmentation_fn

    if arguments.sheet is None:
        if arguments.augmentation is not None or arguments.size is not None:
            raise ValueError("--augmentation and --size are for the picture: pass --sheet FILE.png too.")
        return
    directory, name = os.path.split(os.path.abspath(arguments.sheet))
    if os.path.splitext(name)[1].lower() not in Image.registered_extensions():
        raise ValueError(f"--sheet={arguments.sheet}: expected the name of an image file, such as sheet.png.")
    if not os.path.isdir(directory):
        raise ValueError(f"--sheet={arguments.sheet}: there is no directory {directory!r}.")
    if arguments.augmentation is not None:
        get_data_augmentation_fn(arguments.augmentation, "TRAIN", arguments.size, arguments.size)


def _show_report(found: Inspection) -> None:
    show(f"{found.directory}: {found.kind}, {found.total:,} samples in {len(found.classes):,} classes")
    shown = found.classes[:_SHOWN_CLASSES]
    titles = ["no label" if one.label is None else f"{one.label:>4}: {one.name}" for one in shown]
    width = max(map(len, titles), default=0)
    most = max((one.samples for one in found.classes), default=1) or 1
    for title, one in zip(titles, shown, strict=True):
        bar = "█" * max(round(_BAR * one.samples / most), 1 if one.samples else 0)
        show(f"  {title:<{width}}  {one.samples:>{len(f'{most:,}')},}  {bar}".rstrip())
    if len(found.classes) > len(shown):
        show(f"  and {len(found.classes) - len(shown):,} more (--json lists all)")
    show(f"Formats: {format_counts(found.formats) or 'none'}")
    if found.width is not None and found.height is not None:
        show(f"Width:   {_spread(found.width)}")
        show(f"Height:  {_spread(found.height)}")
    if found.ignored:
        show(f"Ignored: {format_counts(found.ignored)}")
    how = "every image was decoded" if found.decoded else "headers were read; --full decodes every image"
    show(f"Bad:     {len(found.bad):,} of {found.total:,} ({how})")
    for sample in found.bad[:_SHOWN_BAD]:
        show(f"  {sample}")
    if len(found.bad) > _SHOWN_BAD:
        show(f"  and {len(found.bad) - _SHOWN_BAD:,} more (--json lists all)")
    for note in found.notes:
        show(f"Note: {note}")
    for problem in found.problems:
        show(f"Training would reject this: {problem}")


def _spread(spread: Spread) -> str:
    return f"{spread.min:,} to {spread.max:,} pixels, median {spread.median:,}"
