"""Epochs in one task, in several, and of readers that write: whatever their order, and wherever one is cut off, everything is the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import headrace as hr
from headrace.core import failpoints
from headrace.core.failpoint_names import FAILPOINTS
from headrace.engine.planning.quick_epochs import LAST_OF_SEVERAL, ONE, SEVERAL, QuickEpochs
from headrace.jobs.directory import Record
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.start.assembly import job_of
from headrace.spark.read_shares import may_write_where_read
from tests.support.epochs_in_tasks import READERS, SHARDS, TASKS, EpochsInTasks
from tests.support.examples import seeds

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EPOCHS, ROWS = 8, 40
SINKS = ("facts", "reasons")
STEPS = [name for name in FAILPOINTS if name.startswith(("source.read.", "state.", "sink."))]


def counted(event: Any, state: Any) -> Any:
    state.n = (state.n or 0) + 1
    yield {"user": event.user, "n": state.n}


def declared(home: Path) -> hr.App:
    """Tables, windows over windows, the first of them, facts, late records and dead letters: outputs of each level and of all."""
    app = hr.App("shop", home=home)
    columns = "user string, n int, text string, at timestamp"
    app.log.create_topic("clicks", partitions=3, schema=columns, key="user", time="at")
    clicks = app.stream("clicks", columns, key="user", time="at", watermark=hr.bounded("20 seconds", idle="1 day"))
    app.sink(clicks.where("n % 2 = 0"), hr.log("facts"), name="facts")
    app.view("counts", clicks.group("user", ttl=None).agg(seen="count(*)", last="max(n)"))
    numbered = clicks.with_columns(number="cast(text as int)")
    minutes = numbered.window(hr.tumbling("1 minute"), by="user").agg(seen="count(*)", most="max(number)")
    app.view("minutes", minutes)
    app.view("best", minutes.top(2, by="seen", per="window"))
    app.view("hours", minutes.window(hr.tumbling("1 hour")).agg(seen="sum(seen)"))
    app.view("numbered", clicks.process(counted, by="user", state="n int", returns="user string, n int", ttl=None), key=["user", "n"])
    return app


def stateless(home: Path) -> hr.App:
    app = hr.App("shop", home=home)
    columns = "user string, n int, text string, at timestamp"
    app.log.create_topic("clicks", partitions=3, schema=columns, key="user", time="at")
    clicks = app.stream("clicks", columns, key="user", time="at", watermark=hr.bounded("20 seconds", idle="1 day"))
    app.sink(clicks.where("cast(text as int) % 2 = 0"), hr.log("facts"), name="facts")
    app.view("last", clicks.select("user", "n").to_table(key="user", ttl=None))
    return app


def facts_alone(home: Path, partitions: int = 3) -> hr.App:
    """No state and no key: what comes of a record stays with its partition, dead letters and what reads them too."""
    app = hr.App("shop", home=home)
    columns = "user string, n int, text string, at timestamp"
    app.log.create_topic("clicks", partitions=partitions, schema=columns, key="user", time="at")
    clicks = app.stream("clicks", columns, key="user", time="at", watermark=hr.bounded("20 seconds", idle="1 day"))
    app.sink(clicks.where("cast(text as int) % 2 = 0"), hr.log("facts"), name="facts")
    app.sink(clicks.dead().select("reason", "offset"), hr.log("reasons"), name="reasons")
    return app


def sent(app: hr.App, random: Random, epoch: int) -> None:
    with app.log.producer(linger=None) as producer:
        for number in range(random.randrange(ROWS)):
            late = random.random() < 0.1
            moment = NOON + timedelta(seconds=15 * epoch + random.uniform(-15, 15) - 600 * late)
            text = "none" if random.random() < 0.05 else str(number)
            producer.send("clicks", {"user": f"u{random.randrange(9)}", "n": number, "text": text, "at": moment}, time=moment)


def result(app: hr.App, job: EpochsInTasks) -> dict[str, Any]:
    """Every record of every topic that the job writes, the rows of its views, and its accounting.

    Facts are in the order of their partition; the order of keys in an epoch has no meaning.
    """
    topics = [topic.name for topic in app.log.topics() if topic.name not in ("clicks", f"{app.name}.accounting")]
    columns = {name: [*app.log.topic(name).columns.names, "_partition"] for name in topics}
    rows = {name: app.log.read(name, columns=columns[name]).to_pylist() for name in topics}
    facts = sorted(rows.pop("facts"), key=lambda row: row["_partition"])
    books = JobAccounting(app.log, app.name, job.record)
    found = {**rows, "totals": books.totals(), "state": books.state(), "epochs": books.epochs().to_dicts()}
    views = {f"rows of {output.name}": app.read(output.name).to_pylist() for output in app.plan().outputs if output.name not in SINKS}
    return {"facts": facts, **{name: sorted(map(repr, one)) for name, one in (found | views).items()}}


def run(
    home: Path, declare: Callable[[Path], hr.App], seed: int, tasks: Callable[[int], str], crashes: Random | None = None
) -> dict[str, Any]:
    """Eight epochs and the end of a job; `tasks` says how each runs, and `crashes` cuts some off at any of their steps."""
    app, random = declare(home), Random(seed)
    job = EpochsInTasks(app, home / "checkpoint")
    for epoch in range(EPOCHS + 1):
        if epoch == EPOCHS:
            job.crash(until="end")
        else:
            sent(app, random, epoch)
        plan = job.plan()
        if plan is None:
            continue
        if crashes is not None:
            try:
                failpoints.configure(f"{crashes.choice(STEPS)}=error(EIO)@{crashes.randrange(1, 8)}")
                job.run(plan, tasks(epoch))
                continue
            except OSError:
                job.crash(until="end" if epoch == EPOCHS else None)
            finally:
                failpoints.configure(None)
        job.run(plan, tasks(epoch))
    return result(app, job)


@pytest.mark.parametrize("declare", [declared, stateless, facts_alone])
def test_one_task_does_exactly_what_several_do(tmp_path: Path, declare: Callable[[Path], hr.App]) -> None:
    several, one = (run(tmp_path / str(number), declare, 7, lambda _, tasks=tasks: tasks) for number, tasks in enumerate((SEVERAL, ONE)))
    assert one == several
    assert one["facts"]
    assert one["clicks.dead"]


@pytest.mark.parametrize("tasks", [SEVERAL, ONE])
def test_the_writes_to_each_output_are_timed_once_in_an_epoch_and_task(tmp_path: Path, tasks: str) -> None:
    app = declared(tmp_path)
    job = EpochsInTasks(app, tmp_path / "checkpoint")
    epochs = 3
    for epoch in range(epochs):
        sent(app, Random(epoch), 3 * epoch)
        plan = job.plan()
        assert plan is not None
        job.run(plan, tasks)
    rows = app.log.read("shop.accounting", columns=["epoch", "step", "writes", "write_micros"]).to_pylist()
    timed = [row for row in rows if row["writes"] is not None]
    # Outputs of the first levels are written before the last one writes the accounting.
    assert {row["step"] for row in timed} == {"facts", "counts", "minutes", "best", "hours", "numbered"}
    assert all(row["writes"] == 1 and row["write_micros"] > 0 for row in timed)
    totals = {row["step"]: row for row in JobAccounting(app.log, app.name, job.record).writes()}
    assert totals["counts"]["writes"] == epochs * TASKS
    assert totals["counts"]["write_micros"] == sum(row["write_micros"] for row in timed if row["step"] == "counts")


def test_any_order_of_one_and_several_tasks_gives_the_same_also_after_crashes(tmp_path: Path) -> None:
    for seed in seeds(4):
        chosen = [Random(f"tasks {seed} {epoch}").choice([SEVERAL, ONE, LAST_OF_SEVERAL]) for epoch in range(EPOCHS + 1)]
        place = tmp_path / str(seed)
        expected = run(place / "several", declared, seed, lambda _: SEVERAL)
        mixed = run(place / "mixed", declared, seed, chosen.__getitem__, Random(f"crashes {seed}"))
        assert expected["clicks.late"]
        assert mixed == expected


def test_readers_that_write_do_exactly_what_other_tasks_do_also_after_crashes_in_either(tmp_path: Path) -> None:
    for seed in seeds(16):
        draws, place = Random(f"readers {seed}"), tmp_path / str(seed)
        expected = run(place / "several", facts_alone, seed, lambda _: SEVERAL)
        readers = run(place / "readers", facts_alone, seed, lambda _: READERS)
        # Each attempt of an epoch draws anew, as where partitions were added, or a setting changed, before the job went on.
        mixed = run(place / "mixed", facts_alone, seed, lambda _, draws=draws: draws.choice([SEVERAL, ONE, READERS]), draws)
        assert expected["reasons"]
        assert readers == expected
        assert mixed == expected


def test_readers_write_only_where_every_task_has_partitions_and_nothing_has_to_meet(tmp_path: Path) -> None:
    apps = (facts_alone(tmp_path / "spread"), facts_alone(tmp_path / "one", partitions=1), stateless(tmp_path / "table"))
    jobs = [job_of(app.plan(), Record("shop-1", SHARDS, TASKS, ""), app.log, until=None) for app in apps]
    assert [may_write_where_read(job) for job in jobs] == [True, False, False]


def test_a_job_goes_back_to_one_task_when_epochs_stay_small() -> None:
    epochs = QuickEpochs(most=100)
    assert [epochs.tasks(rows) for rows in (100, 5_000, 1, 1, 90, 1, 1, 1, 1)] == [ONE, *[SEVERAL] * 6, LAST_OF_SEVERAL, ONE]


def test_an_epoch_that_one_task_is_slow_with_goes_to_several_for_longer_each_time() -> None:
    epochs = QuickEpochs(most=100)
    small = []
    for _ in range(3):
        while epochs.tasks(1) != ONE:
            pass
        assert epochs.tasks(1, 20.0) == ONE, "the first one read the state of all shards"
        assert epochs.tasks(1, 20.0) == SEVERAL
        small.append(0)
        while epochs.tasks(1) != LAST_OF_SEVERAL:
            small[-1] += 1
    assert small[0] < small[1] < small[2]


def test_without_a_bound_no_epoch_runs_in_one_task() -> None:
    assert QuickEpochs(most=0).tasks(0) == SEVERAL
