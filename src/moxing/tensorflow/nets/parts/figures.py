"""Writes `figures.json`, so that `moxing zoo` need not build the networks nor import TensorFlow.

`python -m moxing.tensorflow.nets.parts.figures` writes the file; a test builds every network and compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moxing.tensorflow.nets.parts.summary import default_classes, layer_rows
from moxing.tensorflow.network_registry import NetworkKeys, network

FILE = Path(__file__).with_name("figures.json")


def figures_of(name: str) -> dict[str, Any]:
    """Returns the figures of one network, from its graph.

    Example:
      >>> figures_of('lenet')['parameters']
      3274634
    """
    found, rows = network(name), layer_rows(name)
    return {
        "parameters": sum(row.parameters for row in rows),
        "multiply_adds": sum(row.multiply_adds for row in rows),
        "image_size": found.image_size,
        "num_classes": default_classes(found),
        "scope": found.scope,
    }


if __name__ == "__main__":
    lines = [f"  {json.dumps(key.value)}: {json.dumps(figures_of(key))}" for key in NetworkKeys]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
