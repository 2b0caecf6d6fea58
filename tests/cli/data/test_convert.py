"""`moxing data convert`."""

from flower_folder import encoded, put, run


def test_convert_prints_a_summary(folder, capsys):
    put(folder, {"daisy/a.gif": encoded("GIF"), "roses/b.webp": encoded("WEBP"), "roses/bad.jpg": b""})
    run("convert", "flowers", "out", "--splits", "train:0.8,eval:0.2", "--prefix", "f", "--shards", "2")
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "out: 22 records in 4 files"
    assert [line.split()[:3] for line in out[1:4]] == [
        ["split", "records", "files"], [*out[2].split()[:2], "2"], ["eval", out[3].split()[1], "2"],
    ]  # fmt: skip
    assert "Stored unchanged: 20 JPEG." in out
    assert "Converted: 1 GIF to PNG, 1 WebP to PNG." in out
    assert f"  {folder}/roses/bad.jpg: empty file" in out
    assert out[-1] == "To read them: mox.ImageClassificationTFRecordMetadata('out', 'f_train_*')"
    run("convert", "flowers", "out", "--splits", "train:0.8,eval:0.2", "--prefix", "f", "--shards", "2")
    assert "22 records in 4 files (4 complete from an earlier call)" in capsys.readouterr().out
    run("convert", "flowers", "out", code=2)
    assert "--overwrite" in capsys.readouterr().err


def test_too_many_bad_images_are_exit_code_1_after_everything_is_written(folder, capsys):
    put(folder, {"roses/bad.jpg": b"", "roses/worse.jpg": b"text"})
    run("convert", "flowers", "out", code=1)
    out, err = capsys.readouterr()
    assert err == (
        "moxing data convert: 2 of 22 images are bad, --max-bad=0.1% allows 1. "
        "The records of the others are complete.\n"
    )
    assert "out: 20 records in 1 files" in out
    assert len((folder.parent / "out" / "bad_samples.jsonl").read_text().splitlines()) == 2
    run("convert", "flowers", "out", "--max_bad", "2")
    run("convert", "flowers", "out", "--max-bad", "10%")
    run("convert", "flowers", "out", "--max-bad", "0", code=1)
