"""Entries of directories and the statistics of files."""

import stat

from moxing.framework.file.entries import FileEntry, FileStatistics, make_statistics


def test_statistics_have_the_names_of_os_stat():
    found = FileStatistics(length=3, mtime_nsec=1_500_000_000, is_directory=False)
    assert (found.st_size, found.st_mtime_ns, found.st_mtime) == (3, 1_500_000_000, 1.5)
    assert stat.S_ISREG(found.st_mode)


def test_a_directory_has_no_length():
    found = make_statistics(7, 1, True)
    assert (found.length, found.is_directory) == (0, True)
    assert stat.S_ISDIR(found.st_mode)


def test_an_entry_as_statistics():
    assert FileEntry("a/b", False, 3, 5, '"etag"').statistics() == make_statistics(3, 5, False)
    assert FileEntry("a", True).statistics().is_directory
