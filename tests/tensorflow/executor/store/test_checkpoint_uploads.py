"""Checkpoints on a store: valid only when complete, whatever happens in between."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest
from digits_model import train, weights
from uploaded import named, save_into, step, wait_for

import moxing.tensorflow as mox


def test_the_marker_comes_behind_the_files_and_before_the_removals(proxy, s3_folder):
    mox.set_flag("keep_checkpoint_max", 1)
    train(s3_folder, 5)
    first = len(proxy.requests)
    train(s3_folder, 9)
    requests = [(method, target.rpartition("/")[2]) for method, target in proxy.requests[first:]]
    sent = [name for method, name in requests if method == "PUT" and "ckpt-9" in name]
    assert sorted(sent[:-1]) == ["model.ckpt-9.data-00000-of-00001", "model.ckpt-9.moxing.json"]
    assert sent[-1] == "model.ckpt-9.index"
    marker = requests.index(("PUT", "checkpoint"))
    assert marker > requests.index(("PUT", "model.ckpt-9.index"))
    removed = [requests.index(request) for request in requests if request[0] == "DELETE"]
    assert len(removed) == 3
    assert min(removed) > marker


@pytest.mark.slow
def test_a_reader_never_sees_half_of_one(s3_folder, tmp_path):
    """While a training saves as fast as it can, whatever the marker names can be read."""
    mox.set_flag("keep_checkpoint_max", 3)
    over, found, broken = threading.Event(), [], []

    def read():
        while not over.is_set():
            names = named(s3_folder)
            if not names or (found and names[-1] == found[-1]):
                time.sleep(0.01)
                continue
            target = tmp_path / str(len(found))
            files = [name for name in mox.file.list_directory(s3_folder) if name.startswith(names[-1] + ".")]
            try:
                mox.file.copy_parallel(s3_folder, str(target), file_list=files, is_processing=False)
                assert weights(target / names[-1])["global_step"] == step(names[-1])
            except Exception as error:
                # It may be gone by now, where reading took longer than three saves.
                if names[-1] in named(s3_folder):
                    broken.append((names[-1], error))
            found.append(names[-1])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        # Long enough for a number of uploads, on a fast machine too.
        train(s3_folder, 150, save_model_steps=1, output_fn=lambda _: time.sleep(0.02), output_every_n_steps=1)
    finally:
        over.set()
        reader.join()
    assert broken == []
    assert len(set(found)) > 3
    assert named(s3_folder) == ["model.ckpt-148", "model.ckpt-149", "model.ckpt-150"]


def test_a_checkpoint_that_is_written_again_does_not_count_meanwhile(proxy, s3_folder, stage, mirror):
    """A hook that restores the best variables at the end has the last step saved a second time."""
    save = partial(save_into, stage)
    save(1, b"one")
    save(2, b"two")
    wait_for(lambda: len(named(s3_folder)) == 2)
    before = len(proxy.requests)
    save(2, b"again")
    wait_for(lambda: mox.file.read(s3_folder + "/model.ckpt-2.index") == "again" and len(named(s3_folder)) == 2)
    seen = [target.rpartition("/")[2] for method, target in proxy.requests[before:] if method == "PUT"]
    assert seen[0] == "checkpoint"
    assert seen[-1] == "checkpoint"
    assert sorted(seen[1:-1]) == sorted(path.name for path in stage.glob("model.ckpt-2.*"))
    # What a hook adds to the JSON of a checkpoint that is there comes by itself, and nothing else with it.
    before = len(proxy.requests)
    mox.file.write(str(stage / "model.ckpt-2.moxing.json"), "more")
    wait_for(lambda: mox.file.read(s3_folder + "/model.ckpt-2.moxing.json") == "more")
    assert [target.rpartition("/")[2] for method, target in proxy.requests[before:] if method == "PUT"] == [
        "model.ckpt-2.moxing.json"
    ]
    # Also before the checkpoint itself is there.
    save(3, b"three")
    mox.file.write(str(stage / "model.ckpt-3.moxing.json"), "more")
    wait_for(lambda: len(named(s3_folder)) == 3)
    mirror.finish()
    assert mox.file.read(s3_folder + "/model.ckpt-3.moxing.json") == "more"


def test_the_only_checkpoint_that_is_written_again_counts_as_it_was(proxy, s3_folder, stage, mirror):
    save_into(stage, 5, b"old")
    wait_for(lambda: named(s3_folder) == ["model.ckpt-5"])
    # As if the run was killed before the index is there.
    proxy.fail("500", times=float("inf"), match=lambda method, target: method == "PUT" and "ckpt-5.index" in target)
    save_into(stage, 5, b"new")
    wait_for(lambda: mox.file.read(s3_folder + "/model.ckpt-5.data-00000-of-00001") == "new")
    (counting,) = named(s3_folder)
    for ending in (".data-00000-of-00001", ".moxing.json", ".index"):
        assert mox.file.read(f"{s3_folder}/{counting}{ending}") == "old"
    proxy.fail("", times=0)
    mirror.finish()
    assert named(s3_folder) == ["model.ckpt-5"]
    assert sorted(mox.file.list_directory(s3_folder)) == sorted(path.name for path in stage.iterdir())
    assert mox.file.read(s3_folder + "/model.ckpt-5.index") == "new"
