"""The progress that a running job shows."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.connectors.log.input import LogInput
from headrace.core.clock import ManualClock
from headrace.core.columns.schema import TIMESTAMP
from headrace.engine.accounting import COLUMNS, Accounting
from headrace.engine.hot_keys import HotKey
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.facts.display import ProgressLines
from headrace.jobs.facts.observer import Observer
from headrace.jobs.facts.progress import Missed
from headrace.jobs.facts.progress import Progress as Facts
from headrace.jobs.facts.tally import Tally
from headrace.log import Log
from headrace.operators.event_time.epoch_time import END
from headrace.operators.event_time.lateness_histogram import Lateness
from headrace.operators.event_time.watermark import Holder, StreamTime, held_by
from headrace.plan.watermarks import Bounded, LossBudget

RULES = {"readings": LossBudget(0.5, timedelta(minutes=1)), "clicks": Bounded(timedelta(0))}


def test_a_job_says_which_bound_its_loss_budget_has_chosen() -> None:
    rule = RULES["readings"]
    assert isinstance(rule, LossBudget)
    learned = Lateness.of(np.array([9, 9, 4, 7, 1]) * 1_000_000)
    progress = StreamTime().observe({0: 9_000_000}, 0).learn(rule, {0: learned})
    plan = EpochPlan(3, {}, {"readings": {0: 5}}, {"readings": progress, "clicks": StreamTime()}, 5_000_000)
    observer = Observer({}, RULES)
    assert observer.bounds == {}
    observer.learn({"durationMs": {}, "sources": [{"startOffset": None, "endOffset": json.dumps(plan.to_json())}]})
    assert observer.bounds == {"readings": timedelta(seconds=2)}
    assert str(observer.look()).endswith("watermark 1970-01-01 00:00:05 (held by readings/0)   readings bounded by 2 seconds")


def test_a_job_says_which_key_is_hot_once_it_may_have_met_one() -> None:
    asked = []

    def met() -> list[HotKey]:
        asked.append(observer.epoch)
        return [HotKey("clicks.window", "{}", 0.95, gathers=False), HotKey("clicks.dedup", '{"page":"[b]"}', 0.92, gathers=True)]

    observer = Observer({}, {}, hot_keys=met)
    for epoch in (0, 1, 2, 8, 9, 10):
        plan = EpochPlan(epoch, {}, {}, {}, 5_000_000)
        observer.learn({"durationMs": {}, "sources": [{"startOffset": None, "endOffset": json.dumps(plan.to_json())}]})
        progress = observer.look()
        assert len(progress.hot_keys) == (2 if epoch else 0)
    # Reading them costs, so they are read when there can be news.
    assert asked == [1, 9]
    assert str(progress).endswith("""hot key {"page":"[b]"} 92% of clicks.dedup""")


def test_a_run_that_continues_counts_only_its_own_records() -> None:
    seconds = count(0, 10)
    before, after = (EpochPlan(epoch, {}, {"clicks": {0: taken}}, {}, 5_000_000) for epoch, taken in ((7, 500), (8, 520)))
    observer = Observer({}, {}, begins=before, clock=lambda: float(next(seconds)))
    waits = observer.look()
    observer.learn({"durationMs": {}, "sources": [{"startOffset": None, "endOffset": json.dumps(after.to_json())}]})
    moved = observer.look()
    assert [(progress.taken, progress.rate) for progress in (waits, moved)] == [(0, 0.0), (20, 2.0)]


def test_a_job_says_how_far_it_is_behind_in_records_and_seconds_and_which_partition_holds_the_watermark(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.create_topic("clicks", partitions=2, schema="at timestamp", time="at", config={"message.timestamp.after.max.ms": -1})
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for partition, seconds in ((0, (0, 40)), (1, (10, 20))):
        records = pa.table({"at": pa.array([noon + timedelta(seconds=second) for second in seconds], TIMESTAMP)})
        log.append_epoch("clicks", records, writer="w", epoch=1, partition=partition, generation=1)
    source, now, rules = LogInput(tmp_path, "clicks", ("at",), "at"), [0.0], {"clicks": RULES["clicks"], "users": Bounded(timedelta(0))}
    start = int(noon.timestamp() * 1_000_000)
    reached = StreamTime().observe({0: start, 1: start + 10_000_000}, 0)
    told = {"clicks": replace(reached, watermark=start), "users": StreamTime(asleep=True)}
    plan = EpochPlan(1, {}, {"clicks": {0: 1, 1: 1}}, told, start, limits={"clicks": END}, clock=0)
    observer = Observer({"clicks": source}, rules, clock=lambda: now[0])
    first = observer.look()
    assert (first.waiting, first.lag_seconds, first.holder, first.round) == (4, None, None, 0)
    observer.learn({"durationMs": {}, "sources": [{"startOffset": None, "endOffset": json.dumps(plan.to_json())}]})
    now[0] = 9.0
    assert observer.look().lag_seconds is None
    now[0] = 10.0
    seen = observer.look()
    assert (seen.taken, seen.waiting, seen.rate, seen.lag_seconds, seen.round) == (2, 2, 0.2, 40.0, 1)
    assert seen.holder == Holder("clicks", 0)
    assert str(seen) == ("epoch 1   2 rows   0 rows/s   lag 2 rows, 40 seconds   watermark 2026-01-01 12:00:00 (held by clicks/0)")
    assert seen.to_json()["held_by"] == {"stream": "clicks", "partition": 0}


def test_a_stream_without_a_record_holds_the_watermark_until_it_is_idle() -> None:
    rules = {"a": Bounded(timedelta(0)), "b": Bounded(timedelta(0))}
    some = replace(StreamTime().observe({0: 5}, 0), watermark=5)
    assert held_by({"a": some, "b": StreamTime()}, rules, 0) == Holder("b", None)
    assert held_by({"a": some, "b": StreamTime(asleep=True)}, rules, 0) == Holder("a", 0)
    assert held_by({"a": replace(some, asleep=True), "b": StreamTime(asleep=True)}, rules, 0) is None


def test_a_run_without_a_terminal_writes_a_line_each_time_its_facts_were_read_anew() -> None:
    clock, out = ManualClock(), io.StringIO()
    lines = ProgressLines("shop", clock, out, as_json=False)
    missed = Missed(late=3, dead_letter=1, late_reason="every window of the record is closed", dead_letter_reason="no event time in at")
    for round_ in (0, 0, 1, 1, 2):
        lines.show(Facts(7, None, 10, 0, 1.0, missed=missed, round=round_))
        clock.advance(timedelta(seconds=5))
    first, second = out.getvalue().splitlines()
    assert first == (
        "2026-01-01 00:00:10 shop   epoch 7   10 rows   1 rows/s   lag 0 rows   watermark none yet   "
        "late 3 (first: every window of the record is closed)   dead letters 1 (first: no event time in at)"
    )
    assert second.startswith("2026-01-01 00:00:20 shop")
    out.truncate(0)
    ProgressLines("shop", clock, out, as_json=True).show(Facts(7, None, 10, 0, 1.0, missed=missed, round=1))
    told = json.loads(out.getvalue().strip("\0"))
    assert (told["job"], told["at"], told["late"], told["dead_letter_reason"]) == ("shop", "2026-01-01T00:00:25Z", 3, "no event time in at")


def test_what_was_missed_is_counted_since_the_run_began_and_only_of_its_own_job(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.create_topic("shop.accounting", schema=COLUMNS)

    def write(job: str, epoch: int, reason: str) -> None:
        accounting = Accounting()
        accounting.add("s", taken=3, out=1, late=1, dead_letter=1, partly_late=1)
        accounting.explain("s", late_reason="late", dead_letter_reason=reason)
        with log.producer() as producer:
            for entry in accounting.entries():
                producer.send("shop.accounting", {"job": job, "epoch": epoch, **entry})

    write("mine", 1, "of an earlier run")
    tally = Tally(log, "shop", "mine")
    assert tally.read() == Missed()
    write("mine", 2, "first")
    write("another", 2, "of another job")
    assert tally.read() == Missed(1, 1, 1, "late", "first")
    write("mine", 3, "second")
    assert tally.read() == Missed(2, 2, 2, "late", "first")
