"""The accounting of a job add up to the same however often they are closed, and a look at them reads what came since."""

from random import Random

import polars as pl
import pyarrow as pa
import pytest

from headrace.api.declaration import Declaration
from headrace.core.columns.schema import schema
from headrace.engine.accounting import COLUMNS, WRITTEN, Accounting
from headrace.jobs.directory import Record
from headrace.jobs.facts import accounting as books_module
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.report import Report
from headrace.jobs.start.outputs import create_outputs
from headrace.log import Log
from tests.support.counting import CountingDisk

RECORD = Record("job-1", shards=2, tasks=2, plan="clicks: source\nper_user: group")


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk(durable=False)


@pytest.fixture
def log(tmp_path, disk) -> Log:
    log = Log(tmp_path / "log", disk=disk)
    log.create_topic("app.accounting", schema=COLUMNS, config={"segment.bytes": 4096})
    return log


def write(log: Log, epoch: int, random: Random, job: str = "job-1") -> None:
    """What the two tasks of an epoch write."""
    for task in range(2):
        counted = Accounting()
        taken = random.randint(0, 9)
        counted.add("clicks", taken=taken, out=taken)
        counted.add("per_user", taken=taken, out=taken - taken // 3, late=taken // 3)
        counted.keep("per_user", epoch + task, 100)
        rows = [{"job": job, "epoch": epoch, **row} for row in counted.entries()]
        columns = {"state_rows": pl.Int64, "state_bytes": pl.Int64, "late_reason": pl.String, "dead_letter_reason": pl.String}
        log.append_epoch("app.accounting", pl.DataFrame(rows, schema_overrides=columns).to_arrow(), writer=f"{job}/{task}", epoch=epoch)


def test_closed_books_say_what_all_entries_say(log, tmp_path):
    random, file = Random(4), tmp_path / "accounting.json"
    write(log, 1, random, job="a job of the same name before")
    for epoch in range(1, 25):
        write(log, epoch, random)
        if random.random() < 0.3:
            # An epoch at work is not closed yet.
            JobAccounting(log, "app", RECORD, file).close(epoch - random.randint(0, 1))
        whole, closed = JobAccounting(log, "app", RECORD), JobAccounting(log, "app", RECORD, file)
        assert closed.totals() == whole.totals()
        assert closed.state() == whole.state() == [{"step": "per_user", "rows": 2 * epoch + 1, "bytes": 200}]
    other = Record("job-2", shards=2, tasks=2, plan=RECORD.plan)
    assert JobAccounting(log, "app", other, file).totals() == []


def test_a_look_at_closed_books_reads_what_came_since(log, disk, tmp_path):
    random, costs = Random(4), []
    for epoch in range(1, 150):
        write(log, epoch, random)
        if epoch in (50, 140):
            JobAccounting(log, "app", RECORD, tmp_path / "accounting.json").close(epoch)
        if epoch in (55, 145):
            disk.taken()
            assert JobAccounting(log, "app", RECORD, tmp_path / "accounting.json").totals()
            costs.append(disk.taken())
    assert costs[1]["map"] <= costs[0]["map"] + 1
    assert costs[1]["bytes read"] <= costs[0]["bytes read"] + 4096


def test_epochs_that_are_closed_for_long_are_removed_and_still_counted(log, tmp_path, monkeypatch):
    monkeypatch.setattr(books_module, "KEPT_EPOCHS", 30)
    random, file = Random(4), tmp_path / "accounting.json"
    segments = []
    for epoch in range(1, 151):
        write(log, epoch, random)
        if epoch % 10 == 0:
            JobAccounting(log, "app", RECORD, file).close(epoch)
            segments.append(log.describe("app.accounting")["partitions"][0]["segments"])
    accounting = JobAccounting(log, "app", RECORD, file)
    random = Random(4)
    taken = sum(random.randint(0, 9) for _ in range(300))
    assert accounting.totals()[0]["in"] == taken
    assert accounting.epochs().get_column("epoch").min() > 110
    assert max(segments[7:]) <= max(segments[:5]) + 1


def test_a_topic_of_an_earlier_version_is_read_and_grows_when_its_job_runs_again(tmp_path):
    log, app = Log(tmp_path / "log"), Declaration("app")
    app.view("per_user", app.stream("clicks", "user string").group("user", ttl=None).agg(n="count(*)"))
    early = [column for column in schema(COLUMNS) if column.name not in WRITTEN]
    log.create_topic("app.accounting", schema=pa.schema(early), config={"segment.bytes": 4 << 20})
    counted = Accounting()
    counted.add("clicks", taken=3, out=3)
    (row,) = counted.entries()
    with log.producer(linger=None) as producer:
        producer.send("app.accounting", {"job": "job-1", "epoch": 1, **{name: row[name] for name in row if name not in WRITTEN}})
    accounting = JobAccounting(log, "app", RECORD)
    assert (accounting.totals()[0]["in"], accounting.writes()) == (3, [])
    create_outputs(log, app.plan(), 1)
    counted.wrote("per_user", 1_500)
    with log.producer(linger=None) as producer:
        for entry in counted.entries():
            producer.send("app.accounting", {"job": "job-1", "epoch": 2, **entry})
    accounting = JobAccounting(log, "app", RECORD)
    assert accounting.totals()[0]["in"] == 6
    assert accounting.writes() == [{"step": "per_user", "writes": 1, "write_micros": 1_500}]
    log.close()


def test_a_report_names_the_last_model_of_a_step_and_how_long_it_takes(tmp_path):
    log, app = Log(tmp_path / "log"), Declaration("app")
    app.view("per_user", app.stream("clicks", "user string").group("user", ttl=None).agg(n="count(*)"))
    create_outputs(log, app.plan(), 1)
    accounting = JobAccounting(log, "app", RECORD, tmp_path / "sums.json")
    with log.producer(linger=None) as producer:
        for epoch, (model, micros) in enumerate([("fraud.onnx 3f2a", 300), ("fraud.onnx 9c01", 500)], start=1):
            counted = Accounting()
            counted.scored("clicks.score", model, micros)
            for entry in counted.entries():
                producer.send("app.accounting", {"job": "job-1", "epoch": epoch, **entry})
            producer.flush()
            accounting.close(epoch)
    assert accounting.models() == [{"step": "clicks.score", "model": "fraud.onnx 9c01", "scorings": 2, "scoring_micros": 800}]
    report = Report("app", 2, None, 1.0, [], models=accounting.models())
    assert "clicks.score: scored by fraud.onnx 9c01, 2 batches, 0.40 ms each" in str(report)
    log.close()
