"""Jobs of two workers on data of a real store: sample for sample as on the local copy, also when they are resumed."""

from __future__ import annotations

import numpy as np
import pytest
from jobs import PROGRAMS, finished
from PIL import Image

import moxing as mox


@pytest.mark.slow
def test_two_workers_see_what_they_see_on_the_local_copy(tmp_path, store, s3_folder):
    for number in range(57):
        path = tmp_path / "images" / f"class{number % 3}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full([5, 5, 3], number, np.uint8)).save(path)
    mox.file.copy_parallel(str(tmp_path / "images"), s3_folder)
    seen = {}
    for name, base_dir in (("local", str(tmp_path / "images")), ("stored", s3_folder)):
        # The second part goes on in the middle of an epoch: two workers have had 3 x 7 of 57 samples each.
        for steps in (3, 9):
            told = {"base_dir": base_dir, "environment": store.environment, "steps": steps}
            told["log_dir"] = str(tmp_path / "log" / name)
            done = finished(tmp_path / f"{name}{steps}", 2, 0, [], told, PROGRAMS / "images_job.py")
            seen[name, steps] = [done[f"worker {worker}"].result["seen"] for worker in range(2)]
    for steps, count in ((3, 21), (9, 42)):
        assert seen["stored", steps] == seen["local", steps]
        assert [len(part) for part in seen["stored", steps]] == [count, count]
    own = [{*seen["stored", 3][worker], *seen["stored", 9][worker][:7]} for worker in range(2)]
    assert len(own[0] | own[1]) == 56 and not own[0] & own[1]
