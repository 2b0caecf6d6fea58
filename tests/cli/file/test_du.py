"""`moxing file du`."""


def test_du(root, run):
    assert run("du", root) == [f"1510  5 files  {root}/"]
    assert run("du", "--human", f"{root}/sub") == [f"1.5 kB  2 files  {root}/sub/"]
    assert [line.split() for line in run("du", f"{root}/sub", f"{root}/a.txt")] == [
        ["1501", "2", "files", f"{root}/sub/"],
        ["5", "1", "file", f"{root}/a.txt"],
        ["1506", "3", "files", "total"],
    ]
    assert [line.split()[0] for line in run("du", "--depth", "1", root)] == ["1501", "1", "1510"]
    assert [line.split()[-1] for line in run("du", "--depth", "2", root)] == [
        f"{root}/{name}" for name in ("sub/", "sub/deep/", "sub-twin/", "")
    ]
