"""The figures of all networks, kept in a file so that `moxing zoo` need not build them, nor import TensorFlow.

`python -m moxing.tensorflow.nets.figures` writes the file; a test builds every network and compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moxing.tensorflow.nets.catalogue import NetworkKeys, network
from moxing.tensorflow.nets.survey import default_classes, layer_rows

FILE = Path(__file__).with_name("figures.json")


def figures_of(key: NetworkKeys) -> dict[str, Any]:
    """The figures of one network, from its graph.

    Example:
      >>> figures_of(NetworkKeys.LENET)['parameters']
      3274634
    """
    found, rows = network(key), layer_rows(key)
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
