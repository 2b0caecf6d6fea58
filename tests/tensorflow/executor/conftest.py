"""Makes the modules beside the tests importable; pytest's importlib mode leaves sys.path alone."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def proxy(proxy):
    """The proxy in front of the store, for requests that are repeated once; who has the store fail wants the error."""
    from moxing.framework import file
    from moxing.framework.flags import FLAGS

    file.set_auth(retry=1)
    FLAGS.set("upload_patience", 0)
    return proxy
