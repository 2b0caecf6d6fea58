"""`moxing zoo`: lists the networks of the zoo, or the layers of one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from moxing.cli.command import runner
from moxing.cli.output import show, show_table
from moxing.framework.util.names import known_name, nearest

_EXAMPLE = """
examples:
  moxing zoo                        all networks
  moxing zoo show resnet_v1_50      the layers of one, and its options for mox.get_model_fn
  moxing zoo show inception_v3 --training --image_size 224 --num_classes 5
"""


def add_commands(commands: Any) -> None:
    """Adds `zoo` to the parser of the `moxing` command."""
    parser = commands.add_parser(
        "zoo",
        help="list the networks of the model zoo, or the layers of one",
        description="Lists the networks that mox.get_model_fn knows.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.set_defaults(function=_list)
    actions = parser.add_subparsers(title="commands", metavar="show NAME")
    show = actions.add_parser("show", help="print the layers and options of one network")
    show.add_argument("name", metavar="NAME", help="the network, such as resnet_v1_50")
    show.add_argument("--image_size", type=int, metavar="N", help="height and width of the images (the published one)")
    show.add_argument("--num_classes", type=int, metavar="N", help="number of classes (the published one)")
    show.add_argument("--training", action="store_true", help="as it trains: with auxiliary heads")
    show.set_defaults(function=runner("moxing zoo show", _show, {}))
    actions.choices = _Commands(actions.choices)


class _Commands(dict[str, argparse.ArgumentParser]):
    """The sub-commands by name. argparse looks words up here; an unknown one is answered with a suggestion."""

    def __contains__(self, word: object) -> bool:
        if super().__contains__(word):
            return True
        near = nearest(str(word), list(_figures()), 1)
        hint = f"did you mean `moxing zoo show {near[0]}`? " if near else ""
        everything = "`moxing zoo` lists all networks, `moxing zoo show NAME` the layers of one."
        raise argparse.ArgumentError(None, f"unknown command {word!r}: {hint}{everything}")


def _figures() -> dict[str, dict[str, Any]]:
    # By its path: importing its package would import TensorFlow.
    file = Path(__file__).parents[1] / "tensorflow" / "nets" / "parts" / "figures.json"
    figures: dict[str, dict[str, Any]] = json.loads(file.read_text())
    return figures


def _list(arguments: argparse.Namespace) -> int:
    figures = _figures()
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return 0
    rows = [("network", "parameters", "multiply-adds", "image", "checkpoint prefix")]
    for name, one in figures.items():
        size = f"{one['image_size']}x{one['image_size']}"
        rows.append((name, _short(one["parameters"]), _short(one["multiply_adds"]), size, one["scope"] or "-"))
    show_table(rows, left=(0, 4))
    show(
        f"{len(figures)} networks, with as many classes as they were published with (1,000 or 1,001; 10 for small "
        "images)."
    )
    show("The layers and options of one: moxing zoo show NAME")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from moxing.tensorflow.nets.nets_factory import options_of
    from moxing.tensorflow.nets.parts.images import check_size
    from moxing.tensorflow.nets.parts.summary import layer_rows
    from moxing.tensorflow.network_registry import network

    if arguments.json:
        raise ValueError("--json prints the table of all networks; it cannot be combined with show.")
    name = known_name("", "NAME", arguments.name, list(_figures()))
    for argument in ("image_size", "num_classes"):
        number = getattr(arguments, argument)
        if number is not None and number < 1:
            raise ValueError(f"--{argument}={number}: expected a number from 1.")
    found = network(name)
    size = arguments.image_size or found.image_size
    check_size(name, found, size, size)
    layers = layer_rows(name, arguments.num_classes, arguments.image_size, arguments.training)
    show(f"{name}: images {size}x{size}, checkpoint prefix {found.scope or '(none)'}")
    rows = [("layer", "kind", "output", "parameters", "multiply-adds")]
    prefix = f"{found.scope}/" if found.scope else ""
    for layer in layers:
        output = "x".join("?" if length is None else str(length) for length in layer.output)
        numbers = [f"{number:,}" if number else "" for number in (layer.parameters, layer.multiply_adds)]
        kind = " + ".join(layer.kinds) or "batch norm"
        rows.append((layer.name.removeprefix(prefix), kind, output, numbers[0], numbers[1]))
    totals = (sum(layer.parameters for layer in layers), sum(layer.multiply_adds for layer in layers))
    rows.append(("total", "", "", f"{totals[0]:,}", f"{totals[1]:,}"))
    show_table(rows, left=(0, 1, 2))
    options = ", ".join(f"{option}={default!r}" for option, default in options_of(found).items())
    show(f"Options for mox.get_model_fn: {options or 'none'}")
    return 0


def _short(number: int) -> str:
    return f"{number / 1e6:,.2f} M" if number < 1e9 else f"{number / 1e9:,.2f} G"
