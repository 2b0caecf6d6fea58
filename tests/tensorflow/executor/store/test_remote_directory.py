"""Directories of a store: names that cannot be trusted, contents that change."""

from __future__ import annotations

import pytest
from digits_model import evaluate, train

import moxing.tensorflow as mox


@pytest.mark.parametrize("argument", ["log_dir", "checkpoint_path"])
def test_a_training_that_goes_on_meanwhile(proxy, s3_folder, argument):
    """Between the listing and the fetching of the only checkpoint it is replaced by the next one."""
    mox.set_flag("keep_checkpoint_max", 1)
    train(s3_folder, 5)
    looked = []

    def go_on(target, content):
        if target.endswith("/checkpoint") and not looked:
            looked.append(target)
            for name in mox.file.list_directory(s3_folder):
                if name.startswith("model.ckpt-5"):
                    mox.file.rename(f"{s3_folder}/{name}", f"{s3_folder}/{name.replace('-5', '-9')}")
            mox.file.write(s3_folder + "/checkpoint", 'model_checkpoint_path: "model.ckpt-9"\n')
        return content

    proxy.rewrite = go_on
    result = evaluate(**{"checkpoint_path": "", argument: s3_folder})
    assert result.checkpoint_path == s3_folder + "/model.ckpt-9"
    assert looked


def test_a_marker_names_nothing_outside(s3_folder, tmp_path):
    """Whoever can write to the bucket cannot have files of this machine read or removed."""
    victim = tmp_path / "victim.index"
    victim.write_text("precious")
    mox.file.write(
        s3_folder + "/checkpoint",
        f'model_checkpoint_path: "model.ckpt-3"\nall_model_checkpoint_paths: "{tmp_path}/victim"\n'
        f'all_model_checkpoint_paths: "../../../{tmp_path}/victim"\nall_model_checkpoint_paths: "model.ckpt-3"\n',
    )
    mox.set_flag("keep_checkpoint_max", 1)
    with pytest.raises(ValueError, match="names .*model.ckpt-3, and there is no .*model.ckpt-3.index"):
        train(s3_folder, 2)
    train(tmp_path / "log", 1)
    for path in (tmp_path / "log").glob("model.ckpt-1.*"):
        mox.file.copy(str(path), f"{s3_folder}/{path.name.replace('ckpt-1', 'ckpt-3')}")
    train(s3_folder, 5, save_model_steps=1)
    assert victim.read_text() == "precious"


def test_keys_that_no_disk_can_have(s3_folder):
    mox.file.write(f"{s3_folder}/{'a' * 300}/x", "x")
    assert train(s3_folder, 2).global_step == 2
