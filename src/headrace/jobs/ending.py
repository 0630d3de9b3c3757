"""The end of an input: the epoch that declared it complete, and the records that were late because of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import polars as pl

from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.log import Log

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """The epoch in which `until="end"` declared a job's input complete, and the number of records that were late for steps since then."""

    epoch: int
    late: int

    def __str__(self) -> str:
        came = "1 record was" if self.late == 1 else f"{self.late:,} records were"
        lost = f"{came} late since then" if self.late else "no record came since then"
        return f'the input was declared complete (until="end") in epoch {self.epoch:,}: {lost}; headrace reset starts over'


def ending(log: Log, place: JobDirectory) -> Ending | None:
    """The declared end of a job's input; None if there is none."""
    plan, record = place.committed_plan(), place.record()
    if record is None or plan is None or not plan.ended:
        return None
    since = JobAccounting(log, place.name, record).epochs().filter(pl.col("epoch") > plan.ended)
    return Ending(plan.ended, int(since.get_column("late").sum()))


def warn_of_the_end(log: Log, place: JobDirectory, until: str | None) -> None:
    """Warn at the start of a run that its input is complete, or is going to be."""
    ended = ending(log, place)
    if ended is not None:
        _log.warning("job %r: %s", place.name, ended)
    elif until == "end":
        _log.warning(
            'job %r: until="end" declares the input complete forever: all records that come after this run are late; '
            'until="flushed" closes the open windows, and the input continues',
            place.name,
        )
