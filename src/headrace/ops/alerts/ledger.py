"""The ledger of a job's alerts in its directory: which hold since when, which were told, and what has still to be told.

What is to be told is written before it is told and removed after it, so a process that is killed between tells it again, under the same id.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.core.files.disk import PosixLock
from headrace.core.files.replacing import replace_text
from headrace.jobs.directory import JobDirectory
from headrace.ops.alerts.measured import Facts
from headrace.plan.alerts import Alert

_FILE, _LOCK = "alerts.json", "alerts.lock"
_HISTORY, _SAMPLES = 100, 400
# Samples of the last minutes are close together, older ones are not.
_NEAR, _LATELY = 5.0, 300.0
_FAR = 60.0
# A watch judges every few seconds. After a longer pause nobody knows whether a condition was true all the time.
_UNWATCHED = 60.0
# Another process that watches the job may have a channel that this one does not have.
_FOREIGN = timedelta(days=1)


@dataclass
class AlertLedger:
    """The known state of the alerts of one job."""

    holding: dict[str, float] = field(default_factory=dict)
    """Since when the condition of an alert has been true."""
    firing: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The event with which each alert that fires was told."""
    untold: list[dict[str, Any]] = field(default_factory=list)
    """Events with the channels, `to`, that do not know of them yet."""
    history: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Facts] = field(default_factory=list)
    job: str = ""
    """The job whose samples they are; one that was reset counts from the beginning."""
    judged_at: float | None = None
    """When the conditions were judged last."""

    def judge(self, job: str, alerts: Sequence[Alert], facts: Facts, channels: Sequence[str]) -> None:
        """Record which alerts begin to fire and which have ended."""
        now = facts["at"] or 0.0
        if self.judged_at is None or abs(now - self.judged_at) > _UNWATCHED:
            self.holding = {}
        self.judged_at = now
        for alert in alerts:
            if not alert.holds(facts):
                self.holding.pop(alert.name, None)
                if self.firing.pop(alert.name, None) is not None:
                    self._tell(job, alert, "resolved", facts, channels)
                continue
            since = self.holding.setdefault(alert.name, now)
            if now - since >= alert.held_for.total_seconds() and alert.name not in self.firing:
                self.firing[alert.name] = self._tell(job, alert, "firing", facts, channels)
        declared = {alert.name for alert in alerts}
        self.holding = {name: since for name, since in self.holding.items() if name in declared}
        for name in self.firing.keys() - declared:
            # It is declared no more: whoever was told that it fires is told that this has ended.
            self._keep({**self.firing.pop(name), "state": "resolved", "at": moment(now), "facts": {}}, channels)

    def give_up(self, channels: Sequence[str], now: float) -> list[tuple[dict[str, Any], str]]:
        """Drop what has waited for a day for a channel that is not among these; returns each such event and channel."""
        before = datetime.fromtimestamp(now, UTC) - _FOREIGN
        dropped = []
        for event in self.untold:
            if datetime.fromisoformat(event["at"]) < before:
                dropped += [(event, channel) for channel in event["to"] if channel not in channels]
                event["to"] = [channel for channel in event["to"] if channel in channels]
        self.untold = [event for event in self.untold if event["to"]]
        return dropped

    def sample(self, facts: Facts) -> None:
        """Keep what `changed` compares with."""
        now = facts["at"] or 0.0
        kept: list[Facts] = []
        for one in [*self.samples, facts]:
            age = now - (one["at"] or 0.0)
            apart = (one["at"] or 0.0) - ((kept[-1]["at"] or 0.0) if kept else float("-inf"))
            if age <= 3_600.0 and apart >= (_NEAR if age <= _LATELY else _FAR):
                kept.append(one)
        self.samples = kept[-_SAMPLES:]

    def _tell(self, job: str, alert: Alert, state: str, facts: Facts, channels: Sequence[str]) -> dict[str, Any]:
        event = {
            "job": job, "alert": alert.name, "condition": alert.condition, "state": state,
            "at": moment(facts["at"] or 0.0), "message": alert.message, "facts": {name: facts.get(name) for name in alert.facts},
        }  # fmt: skip
        return self._keep(event, channels)

    def _keep(self, event: dict[str, Any], channels: Sequence[str]) -> dict[str, Any]:
        event = {**event, "id": secrets.token_hex(8)}
        self.history = [*self.history, event][-_HISTORY:]
        self.untold.append({**event, "to": list(channels)})
        return event


@contextmanager
def held(place: JobDirectory) -> Iterator[AlertLedger | None]:
    """The ledger, for the first process that opens it; None while another one has it. It is written when the block ends."""
    lock = PosixLock(place.path / _LOCK)
    taken = lock.acquire(wait=False)
    try:
        ledger = ledger_of(place) if taken else None
        yield ledger
        if ledger is not None:
            write(place, ledger)
    finally:
        lock.release()
        lock.rest()


def ledger_of(place: JobDirectory) -> AlertLedger:
    """The ledger as it was last written."""
    file = place.path / _FILE
    return AlertLedger(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else AlertLedger()


def write(place: JobDirectory, ledger: AlertLedger) -> None:
    replace_text(place.path / _FILE, json.dumps(asdict(ledger)))


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
