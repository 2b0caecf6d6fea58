import logging

from moxing.tensorflow.executor.store.shown_names import SHOW_LOCAL_PATHS, ShownNames


def line(message, *args, **attributes):
    return logging.makeLogRecord({"msg": message, "args": args, **attributes})


def test_lines_have_the_urls():
    names = ShownNames()
    names.add("/local", "s3://bucket/log")
    logger = logging.getLogger("tensorflow")
    shown, kept = line("into %s", "/local/a"), line("into %s", "/local/a", **SHOW_LOCAL_PATHS)
    with names.in_logs():
        assert logger.filter(shown) and logger.filter(kept)
    assert shown.getMessage() == "into s3://bucket/log/a"
    assert kept.getMessage() == "into /local/a"
    after = line("into %s", "/local/a")
    assert logger.filter(after) and after.getMessage() == "into /local/a"


def test_a_line_that_does_not_fit_its_arguments_goes_on_to_whoever_prints_it():
    with ShownNames().in_logs():
        assert logging.getLogger("tensorflow").filter(line("%d of it", "x"))


def test_errors_have_the_urls():
    names = ShownNames()
    names.add("/local", "s3://bucket/log")
    error = FileNotFoundError(2, "nothing in /local", "/local/a")
    names.rename(error)
    assert str(error) == "[Errno 2] nothing in s3://bucket/log: 's3://bucket/log/a'"
