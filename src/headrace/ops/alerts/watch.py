"""The watch over the alerts of jobs: a round measures, judges and tells. A job watches itself, and a server all jobs of its home.

Of several processes that watch a job, one at a time makes a round; what one told, the others know.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.core.durations import duration, spelled
from headrace.core.errors import ConnectorError, HeadraceError
from headrace.core.repeating import repeated
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.description import JobDescription, read_description
from headrace.log import Log
from headrace.ops.alerts.channels import Channels
from headrace.ops.alerts.ledger import AlertLedger, held, ledger_of, moment, write
from headrace.ops.alerts.measured import changed, measured
from headrace.plan.alerts import BUILT_IN, Alert

EVERY = 5.0
Spent = defaultdict[str, float]
_log = logging.getLogger("headrace.alerts")


def alerts_of(description: JobDescription) -> list[Alert]:
    """The alerts of a job: those that its app declares, and the built-in ones that it does not declare itself."""
    own = [Alert(one["name"], one["condition"], duration(one["for"]), one["message"]) for one in description.alerts]
    return [*own, *(alert for alert in BUILT_IN if alert.name not in {one.name for one in own})]


def make_round(place: JobDirectory, log: Log, channels: Channels, now: float, spent: Spent | None = None) -> None:
    """Measure a job, judge its alerts, and tell what is new; nothing if another process does so at the moment.

    `spent` has the seconds that each channel took for other jobs of the round.
    """
    description, record = read_description(place.path), place.record()
    if description is None or record is None:
        return
    with held(place) as ledger:
        if ledger is None:
            return
        facts = measured(place, log, description, now)
        if ledger.job != record.id:
            ledger.job, ledger.samples = record.id, []
        ledger.judge(place.name, alerts_of(description), changed(facts, ledger.samples), channels.names)
        ledger.sample(facts)
        for event, channel in ledger.give_up(channels.names, now):
            _log.warning("alert %r of job %r was not told by %s, which is not configured", event["alert"], place.name, channel)
        write(place, ledger)
        _tell(place, ledger, channels, Spent(float) if spent is None else spent)


def told(place: JobDirectory, description: JobDescription) -> dict[str, Any]:
    """The alerts of a job for readers: each with its state, and the last events."""
    ledger, own = ledger_of(place), {one["name"] for one in description.alerts}
    alerts = [
        {
            "name": alert.name, "condition": alert.condition, "for": spelled(alert.held_for), "message": alert.message,
            "built_in": alert.name not in own,
            "state": "firing" if alert.name in ledger.firing else "pending" if alert.name in ledger.holding else "ok",
            "since": moment(ledger.holding[alert.name]) if alert.name in ledger.holding else None,
            "facts": ledger.firing[alert.name]["facts"] if alert.name in ledger.firing else {},
        }
        for alert in alerts_of(description)
    ]  # fmt: skip
    return {"firing": len(ledger.firing), "alerts": alerts, "history": ledger.history[::-1]}


@contextmanager
def watching(jobs: Callable[[], Sequence[JobDirectory]], log: Log, channels: Channels) -> Iterator[None]:
    """Make rounds in a thread for as long as the block lasts."""

    def rounds() -> None:
        spent = Spent(float)
        for place in jobs():
            try:
                make_round(place, log, channels, log.clock.now() / 1_000_000, spent)
            except Exception as error:  # noqa: BLE001 - without this thread, nobody would be told of any alert
                _log.warning(
                    "alerts of job %r cannot be judged: %s", place.name, error, exc_info=not isinstance(error, HeadraceError | OSError)
                )

    with repeated(rounds, seconds=EVERY, name="headrace-alerts"):
        yield


def jobs_in(home: Path) -> list[JobDirectory]:
    """Every job of a home."""
    folder = home / "jobs"
    return [JobDirectory(home, path.name) for path in sorted(folder.iterdir()) if path.is_dir()] if folder.is_dir() else []


def _tell(place: JobDirectory, ledger: AlertLedger, channels: Channels, spent: Spent) -> None:
    """Tell each channel what it does not know, until it has taken its time: one that hangs must not keep conditions from being judged."""
    for event in list(ledger.untold):
        for channel in [channel for channel in event["to"] if channel in channels.names and spent[channel] < channels.patience]:
            began = time.monotonic()
            try:
                channels.tell(channel, {name: value for name, value in event.items() if name != "to"})
            except ConnectorError as error:
                _log.warning("%s; it is tried again", error)
                continue
            finally:
                spent[channel] += time.monotonic() - began
            event["to"].remove(channel)
            write(place, ledger)
        if not event["to"]:
            ledger.untold.remove(event)
