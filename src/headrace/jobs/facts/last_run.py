"""The record of a job's last run, in the job's directory: its start and end, its progress, and the last error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headrace.checkpoint.journal import COMMITS, entry
from headrace.core.clock import Clock, to_datetime
from headrace.core.errors import HeadraceError
from headrace.core.files.replacing import replace_text
from headrace.core.redaction import Redaction
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.progress import Progress

_FILE = "run.json"
_INTERRUPTIONS = 20


@dataclass(frozen=True)
class LastRun:
    """The facts of a run. Without `ended_at` it still runs, or was killed: the lock of the job tells which."""

    began_at: str
    ended_at: str | None = None
    last_error: str | None = None
    """The error of the last run that failed: this one, or an earlier one."""
    failed_at: str | None = None
    progress: dict[str, Any] = field(default_factory=dict)
    """The facts as they were last read."""
    topics: tuple[str, ...] = ()
    """The streams that it reads from the log."""
    elsewhere: bool = False
    """Whether it reads other systems, too."""
    interruptions: tuple[dict[str, Any], ...] = ()
    """The last runs that were killed or failed: `how`, the `epoch` committed last, its `committed_at`, and `restarted_at`; once there is
    one, the first epoch after it, `recovered_epoch`, and when it was committed, `recovered_at`."""

    @classmethod
    def of(cls, place: JobDirectory) -> LastRun | None:
        """The last run of a job; None if there was none."""
        file = place.path / _FILE
        if not file.is_file():
            return None
        found = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{**found, "topics": tuple(found["topics"]), "interruptions": tuple(found.get("interruptions", ()))})


class Recorder:
    """Keeps the record of a present run; only the holder of the job may write it."""

    def __init__(self, place: JobDirectory, clock: Clock) -> None:
        self._place, self._clock = place, clock
        before = LastRun.of(place)
        began = LastRun(self._now)
        self._write(began if before is None else self._after(before, began))
        self._round = -1

    def reads(self, topics: tuple[str, ...], elsewhere: bool) -> None:
        """Record the streams of the run."""
        self._write(replace(self._run, topics=topics, elsewhere=elsewhere))

    def record(self, progress: Progress) -> None:
        """Record the progress of the run, whenever its facts have been read again, and its first epoch after an interruption."""
        self._recovered(progress.epoch)
        if progress.round > self._round:
            self._round = progress.round
            self._write(replace(self._run, progress=progress.to_json()))

    def end(self, error: Exception | None = None) -> None:
        """Record the end of the run, and what stopped it."""
        self._recovered(self._place.committed_epoch())
        ended = replace(self._run, ended_at=self._now)
        if error is not None:
            ended = replace(ended, last_error=_said(error), failed_at=ended.ended_at)
        self._write(ended)

    def _after(self, before: LastRun, began: LastRun) -> LastRun:
        """A run that follows another, with the facts of failed runs."""
        how = "killed" if before.ended_at is None else "failed" if before.failed_at == before.ended_at else None
        known = before.interruptions
        if how is not None:
            epoch = self._place.committed_epoch()
            restarted = to_datetime(self._clock.now()).isoformat()
            known = (*known, {"how": how, "epoch": epoch, "committed_at": self._committed_at(epoch), "restarted_at": restarted})
        return replace(began, last_error=before.last_error, failed_at=before.failed_at, interruptions=known[-_INTERRUPTIONS:])

    def _recovered(self, epoch: int) -> None:
        """Record the first epoch after each interruption. Only the run itself is sure to see it: its commit is soon removed."""
        if all("recovered_epoch" in found or epoch <= found["epoch"] for found in self._run.interruptions):
            return
        known = (self._over(found, epoch) for found in self._run.interruptions)
        self._write(replace(self._run, interruptions=tuple(known)))

    def _over(self, found: dict[str, Any], epoch: int) -> dict[str, Any]:
        if "recovered_epoch" in found or epoch <= found["epoch"]:
            return found
        first = found["epoch"] + 1
        return {**found, "recovered_epoch": first, "recovered_at": self._committed_at(first)}

    def _committed_at(self, epoch: int) -> str | None:
        """When an epoch was committed; None once Spark has removed the entry."""
        file = entry(self._place.checkpoint, COMMITS, epoch - 1)
        return to_datetime(int(file.stat().st_mtime * 1_000_000)).isoformat() if file.is_file() else None

    @property
    def _now(self) -> str:
        return to_datetime(self._clock.now()).replace(microsecond=0).isoformat().replace("+00:00", "Z")

    def _write(self, run: LastRun) -> None:
        self._run = run
        replace_text(self._place.path / _FILE, json.dumps(asdict(run), indent=1))


@contextmanager
def recorded(place: JobDirectory, clock: Clock) -> Iterator[Recorder]:
    """Record a run: its progress, and what stopped it."""
    recorder = Recorder(place, clock)
    try:
        yield recorder
    except BaseException as error:
        # What stopped the run matters more than a full disk. An interrupt is not a failure.
        with suppress(OSError):
            recorder.end(error if isinstance(error, Exception) else None)
        raise
    recorder.end()


def _said(error: Exception) -> str:
    """The text of an error, without the secrets that an error of another system may contain."""
    text = error.fact if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
    return Redaction(os.environ)(text)
