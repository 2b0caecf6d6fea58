"""Makes the modules beside the tests importable; pytest's importlib mode leaves sys.path alone."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# What does not hold is shown with its values, as in the tests themselves.
pytest.register_assert_rewrite("network_checks", "classified_checks")
