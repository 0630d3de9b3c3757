"""The log of a job, in its directory: the start and end of its runs, what stopped them, and Headrace's messages meanwhile."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler

from headrace.core.clock import Clock, to_datetime
from headrace.core.redaction import Redaction
from headrace.jobs.directory import JobDirectory

# Two files of this size are kept at most.
_SIZE = 10_000_000


class LineFormatter(logging.Formatter):
    """A line with the time of the job's clock, without secrets: as text, or as a JSON object."""

    def __init__(self, clock: Clock, *, as_json: bool = False) -> None:
        super().__init__()
        self._clock, self._as_json = clock, as_json
        self._hide = Redaction(os.environ)

    def format(self, record: logging.LogRecord) -> str:
        at, text = to_datetime(self._clock.now()), self._hide(record.getMessage())
        level = record.levelname.lower()
        if not self._as_json:
            return f"{at:%Y-%m-%d %H:%M:%S} {level} {text}"
        return json.dumps({"at": at.isoformat(), "level": level, "logger": record.name, "message": text}, ensure_ascii=False)


@contextmanager
def own_log(place: JobDirectory, clock: Clock, *, as_json: bool = False) -> Iterator[None]:
    """Keep the log of a run; only the holder of the job may write it."""
    handler = RotatingFileHandler(place.own_log, maxBytes=_SIZE, backupCount=1, encoding="utf-8")
    handler.setFormatter(LineFormatter(clock, as_json=as_json))
    logger = logging.getLogger("headrace")
    # Where a program has no handler, Python shows warnings on stderr; with one it would not.
    shown = None if logger.hasHandlers() else logging.lastResort
    for one in filter(None, (shown, handler)):
        logger.addHandler(one)
    try:
        _say(handler, logging.INFO, "the run begins")
        yield
        _say(handler, logging.INFO, "the run ends")
    except BaseException as error:
        # An interrupt is not a failure.
        level = logging.ERROR if isinstance(error, Exception) else logging.INFO
        _say(handler, level, f"the run ends: {str(error) or type(error).__name__}")
        raise
    finally:
        for one in filter(None, (shown, handler)):
            logger.removeHandler(one)
        handler.close()


def _say(handler: logging.Handler, level: int, text: str) -> None:
    """Write a line whatever the level of the package's logger is."""
    handler.handle(logging.LogRecord("headrace.jobs", level, "", 0, text, None, None))
