"""The exceptions of `mox.file`."""

import moxing as mox


def test_exceptions_are_those_of_python():
    assert issubclass(mox.file.MoxFileNotExistsException, FileNotFoundError)
    assert issubclass(mox.file.MoxFileNameDuplicateException, FileExistsError)
    for kind in (mox.file.MoxFileReadException, mox.file.MoxFileRespException):
        error = kind({"status": 403}, "refused")
        assert isinstance(error, OSError)
        assert error.resp == {"status": 403}
        assert str(error) == "refused"
        assert kind({"status": 403}).resp == {"status": 403}
    error = mox.file.MoxFileReadException(None, 5, "Input/output error", "/x")
    assert (error.errno, error.filename, error.resp) == (5, "/x", None)
