"""What a run says of a local directory that stands for a url, it says of the url."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

#: For a log line that is to have the local paths: `tf.logging.error(..., extra=AS_IT_IS)`.
AS_IT_IS = {"moxing_as_it_is": True}


class ShownNames:
    """Urls in place of the local directories that stand for them.

    Example:
      >>> names = ShownNames()
      >>> names.add('/tmp/stage-1', 's3://bucket/log')
      >>> names.shown('Saving checkpoints for 0 into /tmp/stage-1/model.ckpt.')
      'Saving checkpoints for 0 into s3://bucket/log/model.ckpt.'
    """

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}

    def add(self, directory: str, url: str) -> None:
        """From now on `directory` is called `url`."""
        self._urls[directory] = url

    def shown(self, text: str) -> str:
        """A text with the urls."""
        for directory, url in self._urls.items():
            text = text.replace(directory, url)
        return text

    def rename(self, error: BaseException) -> None:
        """Puts the urls into the message of an error."""
        error.args = tuple(self.shown(value) if isinstance(value, str) else value for value in error.args)
        # Of TensorFlow's errors and of those of the system.
        for attribute in ("_message", "strerror", "filename", "filename2"):
            if isinstance(value := getattr(error, attribute, None), str):
                setattr(error, attribute, self.shown(value))

    @contextmanager
    def in_logs(self) -> Iterator[None]:
        """Inside, log lines have the urls; TensorFlow's own too, such as `Restoring parameters from`."""

        def rename(record: logging.LogRecord) -> bool:
            try:
                message = record.getMessage()
            except Exception:  # a line that does not fit its arguments: whoever prints it says so
                return True
            if not hasattr(record, "moxing_as_it_is") and (shown := self.shown(message)) != message:
                record.msg, record.args = shown, ()
            return True

        loggers = [logging.getLogger(name) for name in ("tensorflow", "moxing")]
        for logger in loggers:
            logger.addFilter(rename)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeFilter(rename)
