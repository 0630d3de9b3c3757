"""The log files of a job: its own and Spark's, their last lines and new ones."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from headrace.jobs.directory import JobDirectory

_LOOK = 0.25


def last_lines(place: JobDirectory, count: int) -> Iterator[tuple[Path, list[str]]]:
    """The last lines of each existing log file."""
    for file in (place.own_log, place.spark_log):
        if file.is_file():
            with file.open(encoding="utf-8", errors="replace") as lines:
                yield file, [line.rstrip("\n") for line in deque(lines, maxlen=count)]


class Following:
    """Reads new lines of the log files of a job, from their present ends."""

    def __init__(self, place: JobDirectory) -> None:
        self._places = {file: file.stat().st_size if file.is_file() else 0 for file in (place.own_log, place.spark_log)}

    def new(self) -> Iterator[tuple[Path, str]]:
        """The complete lines since the last call; a file that was started again is read from its beginning."""
        for file, place in self._places.items():
            size = file.stat().st_size if file.is_file() else 0
            start = place if size >= place else 0
            if size > start:
                with file.open("rb") as content:
                    content.seek(start)
                    whole = content.read(size - start).rpartition(b"\n")
                self._places[file] = start + len(whole[0]) + len(whole[1])
                if whole[1]:
                    yield from ((file, line) for line in whole[0].decode(errors="replace").split("\n"))

    def __iter__(self) -> Iterator[tuple[Path, str]]:
        while True:
            yield from self.new()
            time.sleep(_LOOK)
