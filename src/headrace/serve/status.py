"""A job as a page shows it: whether it runs, its progress, and the fate of the records of every step."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headrace.checkpoint.journal import COMMITS
from headrace.engine.planning.epoch_size import EPOCH_ROWS
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import COUNTS
from headrace.jobs.facts.described_time import rebuilt
from headrace.jobs.facts.description import DescribedOutput, DescribedStep, JobDescription
from headrace.jobs.facts.last_run import LastRun
from headrace.jobs.facts.listing import Listed, listed
from headrace.jobs.facts.phases import phases_of
from headrace.jobs.syncing import SYNCED
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.plan.topics import dead_topic, late_topic
from headrace.plan.windows.kinds import Hopping
from headrace.serve.dead_reasons import DeadReasons
from headrace.serve.event_time import event_time
from headrace.serve.followed_accounting import EpochCounts, FollowedAccounting
from headrace.serve.interruptions import Interruptions
from headrace.serve.lags import lags_of
from headrace.serve.latencies import Latencies

_SHOWN = 120


class JobStatus:
    """The status of one job, computed on demand."""

    def __init__(self, log: Log, place: JobDirectory) -> None:
        self._log, self._place = log, place
        self._accounting = FollowedAccounting(log, place)
        self._interruptions = Interruptions()
        self._latencies = Latencies(log, place)
        self._dead_reasons = DeadReasons(log)

    def told(self, description: JobDescription) -> dict[str, Any]:
        """All facts, as JSON."""
        self._accounting.read()
        found, plan = listed(self._place, self._log), self._place.committed_plan()
        run = LastRun.of(self._place)
        steps = list(self._steps(description))
        epochs = self._accounting.epochs()
        sources = [step for step in steps if step["kind"] == "stream"]
        outputs = [step for step in steps if step["kind"] in ("view", "sink")]
        streams, phases = {step["name"] for step in sources}, phases_of(self._place.path)
        return {
            "name": description.app,
            **_life(found),
            "epoch": found.epoch,
            "epoch_seconds": epochs[-1].seconds if epochs else None,
            "in_rate": sum(step["in_rate"] for step in sources),
            "out_rate": sum(step["in_rate"] for step in outputs),
            "lag": found.lag,
            "lag_seconds": run.progress.get("lag_seconds") if run is not None and found.state == "running" else None,
            **event_time(plan, description),
            "late": sum(step["in"] for step in steps if step["kind"] == "late"),
            "dead_letter": sum(step["in"] for step in steps if step["kind"] == "dead"),
            "late_minute": self._accounting.minute.total("late"),
            "dead_letter_minute": self._accounting.minute.total("dead_letter"),
            "restarts": run.progress.get("restarts", 0) if run is not None else 0,
            "interruptions": self._interruptions.told(run, found.epoch, self._accounting, streams),
            "steps": steps,
            "lags": lags_of(self._log, plan, self._log.clock.now()),
            "latency": self._latencies.read(),
            "durations": self._accounting.durations.told(),
            "dead_reasons": self._dead_reasons.read(description),
            "committed_at": _modified(self._place.checkpoint / COMMITS, str(found.epoch - 1)),
            "synced_at": _modified(self._place.path, SYNCED),
            "epoch_rows": _chosen(self._place.path / EPOCH_ROWS),
            "epochs": [{**_epoch(counts, streams), "phases": phases.get(counts.epoch)} for counts in epochs[-_SHOWN:]],
            "told_at": _moment(time.time()),
        }

    def follow(self) -> None:
        """Read what was written since the last call; what the journal drops soon is kept."""
        self._accounting.read()

    def watermarks(self) -> list[tuple[int, int]]:
        """When the watermark was where, in milliseconds, over the last minutes that were followed."""
        return [(int(at * 1000), mark // 1000) for at, mark in self._accounting.watermarks]

    def _steps(self, description: JobDescription) -> Iterator[dict[str, Any]]:
        rates, history = self._accounting.minute.rates(), self._accounting.minute.history()
        for step in description.steps:
            topic = step.name if step.kind == "stream" and self._held(step.name) is not None else ""
            yield {
                "name": step.name, "kind": step.kind, "does": step.does, "reads": list(step.reads), "columns": step.columns,
                "keeps": step.keeps, "bound": step.bound, "topic": topic, "key": [],
                "window": _window(step), "rule": step.watermark, "history": history.get(step.name, []),
                **self._counted(step.name, rates),
            }  # fmt: skip
        for output in description.outputs:
            yield {**_output(output), "history": history.get(output.name, []), **self._counted(output.name, rates)}
        for step in description.steps:
            if step.kind == "stream":
                for kind, topic in (("late", late_topic(step.name)), ("dead", dead_topic(step.name))):
                    if (records := self._held(topic)) is not None:
                        yield self._side(kind, topic, step.name, records)

    def _side(self, kind: str, topic: str, stream: str, records: int) -> dict[str, Any]:
        counts = {**dict.fromkeys(COUNTS, 0), "in": records, "out": records}
        words = "late records, kept" if kind == "late" else "records that could not be read or computed"
        return {
            "name": topic, "kind": kind, "does": words, "reads": [stream], "columns": "", "keeps": "", "bound": "", "topic": topic,
            "key": [], "window": None, "rule": None, "history": [], "changed_at": None, **counts, "in_rate": 0.0, "out_rate": 0.0,
            "late_reason": None, "dead_letter_reason": None, "state_rows": None, "state_bytes": None,
            "writes": None, "write_seconds": None,
        }  # fmt: skip

    def _counted(self, name: str, rates: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        totals = self._accounting.totals(name)
        rows, size = totals.kept or (None, None)
        writes, micros = totals.written or (None, None)
        rate, changed = rates.get(name, {"in": 0.0, "out": 0.0}), self._accounting.changed_at(name)
        return {
            **totals.counts, **totals.reasons, "in_rate": round(rate["in"], 2), "out_rate": round(rate["out"], 2),
            "writes": writes, "write_seconds": None if micros is None else micros / 1_000_000,
            "state_rows": rows, "state_bytes": size, "changed_at": None if changed is None else _moment(changed),
        }  # fmt: skip

    def _held(self, topic: str) -> int | None:
        """The number of records in a topic of the log; None if it does not exist."""
        try:
            declared = self._log.topic(topic)
        except UnknownTopic:
            return None
        states = [self._log.partition(declared, index).state() for index in range(declared.partitions)]
        return sum(state.visible - state.start for state in states)


def _life(found: Listed) -> dict[str, Any]:
    return {
        "state": found.state,
        "since": None if found.since is None else found.since.isoformat(),
        "last_error": found.last_error,
    }


def _output(output: DescribedOutput) -> dict[str, Any]:
    return {
        "name": output.name, "kind": output.kind, "does": output.does, "reads": [output.reads], "columns": output.columns, "keeps": "",
        "bound": "", "topic": output.topic, "key": list(output.key), "window": None, "rule": None,
    }  # fmt: skip


def _epoch(counts: EpochCounts, streams: set[str]) -> dict[str, Any]:
    """An epoch: input is counted at the streams; late, duplicate, filtered and bad records at any step."""
    taken = sum(found["in"] for step, found in counts.steps.items() if step in streams)
    rest = {name: sum(found[name] for found in counts.steps.values()) for name in ("late", "duplicate", "filtered", "dead_letter")}
    out = sum(found["out"] for step, found in counts.steps.items() if step in streams)
    moment = _moment(counts.committed_at) if counts.committed_at else None
    return {
        "epoch": counts.epoch,
        "committed_at": moment,
        "seconds": counts.seconds,
        "in": taken,
        "out": out,
        "watermark": counts.watermark and counts.watermark // 1000,
        **rest,
    }


def _window(step: DescribedStep) -> dict[str, Any] | None:
    """The windows of a step, with the start and interval of those that begin regularly."""
    found = rebuilt(step.window)
    if not isinstance(found, Hopping):
        return step.window
    every, offset = (span // timedelta(milliseconds=1) for span in (found.hop, found.offset))
    return {**(step.window or {}), "every": every, "begins": offset}


def _chosen(file: Path) -> dict[str, Any] | None:
    """How many records an epoch takes in at most, and why; None where it is what the run was told."""
    found: dict[str, Any] | None = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    return found


def _modified(directory: Path, name: str) -> str | None:
    try:
        return _moment((directory / name).stat().st_mtime)
    except FileNotFoundError:
        return None


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
