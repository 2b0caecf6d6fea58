"""Log lines and errors show the url that the user gave, not the local directory that the run works in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

#: For a log line that must show local paths: `tf.logging.error(..., extra=SHOW_LOCAL_PATHS)`.
SHOW_LOCAL_PATHS = {"moxing_local_paths": True}


class ShownNames:
    """Replaces local directories by urls in texts.

    Example:
      >>> names = ShownNames()
      >>> names.add('/tmp/stage-1', 's3://bucket/log')
      >>> names.shown('Saving checkpoints for 0 into /tmp/stage-1/model.ckpt.')
      'Saving checkpoints for 0 into s3://bucket/log/model.ckpt.'
    """

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}

    def add(self, directory: str, url: str) -> None:
        """Shows `directory` as `url` from now on."""
        self._urls[directory] = url

    def shown(self, text: str) -> str:
        """The text with urls."""
        for directory, url in self._urls.items():
            text = text.replace(directory, url)
        return text

    def rename(self, error: BaseException) -> None:
        """Replaces local directories in the message of an error."""
        error.args = tuple(self.shown(value) if isinstance(value, str) else value for value in error.args)
        # Attributes of TensorFlow's errors and of OSError.
        for attribute in ("_message", "strerror", "filename", "filename2"):
            if isinstance(value := getattr(error, attribute, None), str):
                setattr(error, attribute, self.shown(value))

    @contextmanager
    def in_logs(self) -> Iterator[None]:
        """Inside, log lines show urls, those of TensorFlow included (`Restoring parameters from`)."""

        def rename(record: logging.LogRecord) -> bool:
            try:
                message = record.getMessage()
            except Exception:  # arguments that do not fit the format: the handler reports it
                return True
            if not hasattr(record, "moxing_local_paths") and (shown := self.shown(message)) != message:
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
