"""Listings of remote directories."""

import os
from urllib.parse import parse_qs, urlsplit

import pytest

import moxing as mox


def listing_of(*keys):
    """A rewriting that answers every listing from these keys: the store at hand makes one slash of two."""

    def rewrite(target, body):
        query = parse_qs(urlsplit(target).query)
        if "list-type" not in query:
            return body
        prefix, delimiter = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        below = sorted(key for key in keys if key.startswith(prefix))
        ends = {key: key.find("/", len(prefix)) if delimiter else -1 for key in below}
        folders = sorted({key[: end + 1] for key, end in ends.items() if end >= 0})
        entries = [f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in below if ends[key] < 0]
        entries += [f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in folders]
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(entries)}</ListBucketResult>".encode()

    return rewrite


def test_a_listing_that_never_ends_is_one_page_at_a_time(s3_folder):
    """Paging: many more names than one answer has."""
    mox.file.set_auth(list_max_keys=3)
    names = [f"{n:02d}" for n in range(11)]
    for name in names:
        mox.file.write(f"{s3_folder}/d/{name}", "")
    assert mox.file.list_directory(f"{s3_folder}/d") == names
    assert mox.file.list_directory(s3_folder, recursive=True) == ["d", *(f"d/{name}" for name in names)]
    mox.file.remove(f"{s3_folder}/d", recursive=True)
    assert not mox.file.exists(f"{s3_folder}/d")


def test_keys_with_empty_parts_are_no_paths(proxy, s3_folder, tmp_path):
    """Joined to their directory they would be a path of this machine, or the directory itself again."""
    for name in ("a/f", "a/c/h"):
        mox.file.write(f"{s3_folder}/{name}", "1")
    root = s3_folder.removeprefix("s3://tests/")
    proxy.rewrite = listing_of(*(f"{root}/{name}" for name in ("a/f", "a/c/h", "a//g", "a///g", "a/c//i/k", "n//x")))
    url = f"{s3_folder}/a"
    assert mox.file.list_directory(url) == ["c", "f"]
    assert mox.file.list_directory(url, recursive=True) == ["c", "c/h", "f"]
    assert [entry.name for entry in mox.file.scan_dir(url)] == ["c", "f"]
    assert list(mox.file.walk(url)) == [(url, ["c"], ["f"]), (f"{url}/c", [], ["h"])]
    assert mox.file.glob(f"{url}/*") == [f"{url}/c", f"{url}/f"]
    assert mox.file.glob(f"{url}/*/*") == [f"{url}/c/h"]
    assert mox.file.glob(f"{url}/**", recursive=True) == [f"{url}/{name}" for name in ("", "c", "c/h", "f")]
    assert mox.file.get_size(url, recursive=True) == 5
    assert mox.file.list_directory(f"{s3_folder}/n") == []
    with pytest.raises(ValueError, match="cannot be a path below dst_url"):
        mox.file.copy_parallel(url, tmp_path / "dst")
    for change in (mox.file.copy_parallel, mox.file.rename):
        with pytest.raises(ValueError, match="the key '.*' in it has an empty part"):
            change(url, f"{s3_folder}/elsewhere")
    assert not any("elsewhere/" in target for method, target in proxy.requests if method == "PUT")
    mox.file.shift("os", "mox")
    try:
        with pytest.raises(OSError, match="not empty"):
            os.rmdir(f"{s3_folder}/n")
    finally:
        mox.file.shift("mox", "os")


def test_a_pattern_below_nothing_matches_nothing(s3_folder):
    mox.file.write(f"{s3_folder}/file", "")
    mox.file.make_dirs(f"{s3_folder}/empty")
    for name in ("none", "file"):
        assert mox.file.glob(f"{s3_folder}/{name}/**", recursive=True) == []
    assert mox.file.glob(f"{s3_folder}/empty/**", recursive=True) == [f"{s3_folder}/empty/"]
