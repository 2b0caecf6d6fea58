"""Open remote files."""

import subprocess
import sys

import moxing as mox

MB = 1 << 20


def test_a_script_that_never_closes_its_files(s3_folder):
    code = (
        "import moxing as mox\n"
        f"f = mox.file.File({s3_folder + '/small'!r}, 'w'); f.write('left open')\n"
        f"g = mox.file.File({s3_folder + '/large'!r}, 'wb'); g.write(b'x' * (9 << 20)); g.write(b'y' * (9 << 20))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert mox.file.read(f"{s3_folder}/small") == "left open"
    assert mox.file.get_size(f"{s3_folder}/large") == 18 * MB
