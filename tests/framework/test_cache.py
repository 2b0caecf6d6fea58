"""`mox.cache()`: scripts call it before they know whether `log_dir` is a URL."""

import subprocess
import sys


def test_it_is_callable_from_the_top_level_and_imports_no_tensorflow():
    code = "import sys, moxing as mox; assert mox.cache() is None; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
