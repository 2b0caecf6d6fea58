"""A thread pool, also while the interpreter shuts down."""

import subprocess
import sys
import textwrap

import pytest

import moxing as mox
from moxing.framework.util.thread_pool import ThreadPool

#: More than one part each way: an upload of 20 MiB and its download use pools inside pools.
SCRIPT = """
    import atexit, sys
    {early}

    def upload():
        import moxing as mox
        src, dst, back = sys.argv[1:]
        mox.file.copy_parallel(src, dst)
        mox.file.copy_parallel(dst, back)
        mox.file.copy_parallel(dst, back, file_list=["a", "large"])
        assert len(mox.file.read(dst + "/large", binary=True)) == 20 << 20
        print("done")

    atexit.register(upload)
"""


def test_errors_arrive_where_the_result_is_used():
    with ThreadPool(2) as pool:
        good, bad = pool.submit(int, "7"), pool.submit(int, "x")
        assert good.result() == 7
        with pytest.raises(ValueError, match="invalid literal"):
            bad.result()
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(int)


@pytest.mark.parametrize("early", ["", "import moxing; from concurrent.futures import ThreadPoolExecutor"])
def test_copies_in_an_atexit_handler(tmp_path, s3_folder, early):
    """Whether or not the modules were imported before the end."""
    source = tmp_path / "from"
    source.mkdir()
    for name in "abc":
        (source / name).write_text(name)
    with open(source / "large", "wb") as large:
        large.truncate(20 << 20)
    code = textwrap.dedent(SCRIPT).format(early=early)
    command = [sys.executable, "-c", code, str(source), f"{s3_folder}/to", str(tmp_path / "back")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert sorted(mox.file.list_directory(f"{s3_folder}/to")) == ["a", "b", "c", "large"]
    assert (tmp_path / "back" / "c").read_text() == "c"
