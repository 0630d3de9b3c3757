"""A job in trouble as its files tell it: a real log, a description, offsets in the planner's form and accounting, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.clock import ManualClock, to_microseconds
from headrace.engine.accounting import Accounting
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.facts.description import description_of
from headrace.jobs.facts.last_run import Recorder
from headrace.jobs.start.outputs import create_outputs
from headrace.log import Log
from headrace.operators.event_time.watermark import Reach, StreamTime
from headrace.ops.why.facts import facts_of
from headrace.ops.why.finding import Finding
from headrace.ops.why.rules import findings
from headrace.plan.topics import accounting_topic

NOON = to_microseconds(datetime(2026, 1, 1, 12, tzinfo=UTC))
SECOND = 1_000_000


class TroubledJob:
    """The app `shop` counts orders by product in windows of five minutes; at noon it is running, and all is well.

    `second` is a stream without records, which is counted together with the orders.
    """

    def __init__(self, home: Path, *, idle: str | None = None, second: str | None = None, alerts: Sequence[Mapping[str, str]] = ()) -> None:
        self.home, self.clock = home, ManualClock(NOON)
        self.log = Log(home / "log", clock=self.clock)
        self.place = JobDirectory(home, "shop")
        self.place.path.mkdir(parents=True)
        app = Declaration("shop")
        rule = hr.bounded("30 seconds", idle=idle)
        columns = "product bigint, country string, price double, at timestamp"
        orders = app.stream("orders", columns, time="at", watermark=rule)
        dutch = orders.where("country = 'NL'")
        app.view("sold", dutch.window(hr.tumbling("5 minutes"), by="product").agg(sold="count(*)"))
        app.view("seen", orders.group("country", ttl=None).agg(orders="count(*)"))
        if second is not None:
            other = app.stream(second, columns, time="at", watermark=rule)
            app.view("other", orders.union(other).window(hr.tumbling("1 hour"), by="product").agg(n="count(*)"))
        self.second = second
        for alert in alerts:
            app.alert(**alert)
        self.plan = app.plan()
        self.log.create_topic("orders", partitions=2, schema=columns, time="at")
        create_outputs(self.log, self.plan, 1)
        description_of(self.plan).write(self.place.path)
        self.place.record_file.write_text(json.dumps(asdict(Record("job-1", 2, 1, ""))))
        self.recorder = Recorder(self.place, self.clock)
        self.recorder.reads(("orders",), elsewhere=False)

    def send(self, count: int = 1) -> None:
        with self.log.producer(linger=None) as producer:
            for _ in range(count):
                producer.send("orders", {"product": 1, "country": "NL", "price": 1.0, "at": datetime(2026, 1, 1, 12, tzinfo=UTC)})

    def commit(self, latest: Mapping[int, int] | None = None, *, seen: Mapping[int, int] | None = None, **more: Any) -> None:
        """Commit an epoch after which the partitions have these latest event times, seen at these moments; noon is 0, in seconds."""
        times = {partition: NOON + second * SECOND for partition, second in (latest or {}).items()}
        reached = StreamTime({part: Reach(time, NOON + (seen or {}).get(part, 0) * SECOND) for part, time in times.items()}, began_at=NOON)
        source = self.plan.sources[0]
        assert source.watermark is not None
        reached = reached.advance(source.watermark, self.clock.now(), lambda moment: moment)
        silent = {} if self.second is None else {self.second: StreamTime(began_at=NOON)}
        topic = self.log.topic("orders")
        ends = {index: self.log.partition(topic, index).state().visible for index in range(topic.partitions)}
        plan = EpochPlan(
            1, {}, {"orders": ends}, {"orders": reached, **silent}, reached.watermark, clock=self.clock.now(), taken_at=NOON
        )  # fmt: skip
        offset = replace(plan, **more).to_json()
        for kind, text in (("offsets", f"v1\n{{}}\n{json.dumps(offset)}"), ("commits", "v1\n{}")):
            (self.place.checkpoint / kind).mkdir(parents=True, exist_ok=True)
            (self.place.checkpoint / kind / "0").write_text(text)

    def account(self, step: str, reason: Mapping[str, str] | None = None, **ends: int) -> None:
        """Write the accounting of a step, as tasks do."""
        accounting = Accounting()
        accounting.add(step, **ends)
        accounting.explain(step, **(reason or {}))
        self._write(accounting)

    def wrote(self, output: str, *seconds: float) -> None:
        """Write how long each of some tasks wrote to an output."""
        for took in seconds:
            accounting = Accounting()
            accounting.wrote(output, round(took * SECOND))
            self._write(accounting)

    def _write(self, accounting: Accounting) -> None:
        with self.log.producer(linger=None) as producer:
            for row in accounting.entries():
                producer.send(accounting_topic("shop"), {"job": "job-1", "epoch": 1, **row})

    def found(self, **asked: Any) -> dict[str, Finding]:
        """What the rules find, by rule."""
        return {finding.rule: finding for finding in findings(facts_of(self.place, self.log, self.clock.now(), **asked))}
