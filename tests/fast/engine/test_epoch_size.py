"""Epochs come near the time they should take: too long ones make the next smaller, quick full ones larger, within limits."""

import json
from random import Random

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.planning.epoch_size import EPOCH_ROWS, LEAST, EpochSize
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.spark.source import JobReader
from tests.support.examples import seeds


@pytest.mark.parametrize("seed", seeds(16))
def test_epochs_of_any_job_with_much_to_do_come_near_their_target(seed):
    draw = Random(seed)
    rate, fixed, target = 10 ** draw.uniform(3.5, 6), draw.uniform(0, 1), draw.uniform(4, 20)
    size = EpochSize(target, 4_000_000)
    seconds = []
    for _ in range(40):
        seconds.append(fixed + size.rows / rate * draw.uniform(0.9, 1.1))
        size.after(size.rows, seconds[-1])
    wanted = size.most / rate
    assert all(min(0.2 * target, 0.5 * wanted) <= took <= 1.3 * target + 1 for took in seconds[-15:])


def test_a_size_stays_within_its_limits():
    size = EpochSize(10.0, 1_000_000)
    for _ in range(20):
        size.after(size.rows, 1_000.0)
    assert LEAST <= size.rows < 10_000
    for _ in range(40):
        size.after(size.rows, 0.01)
    assert size.rows == 1_000_000


@pytest.mark.parametrize(("taken", "seconds"), [(500, 60.0), (0, 60.0), (900_000, 3.0), (1_000_000, 7.0), (1_000_000, 10.0)])
def test_an_epoch_that_is_small_partly_filled_or_near_the_target_changes_nothing(taken, seconds):
    size = EpochSize(10.0, 1_000_000)
    assert size.after(taken, seconds) == 1_000_000
    assert size.why == ""


def test_what_was_chosen_says_why():
    size = EpochSize(10.0, 1_000_000)
    size.after(1_000_000, 20.0)
    assert (size.rows, size.why) == (500_000, "an epoch of 1,000,000 records took 20.0 s, and 10 s are wanted")


def test_the_source_of_a_job_plans_smaller_epochs_while_they_take_too_long_and_says_so(tmp_path, monkeypatch):
    app = hr.App("planned", home=tmp_path)
    app.view("seen", app.stream("clicks", "n bigint").group("n", ttl=None).agg(count="count(*)"))
    with app.log.producer() as producer:
        producer.send_table("clicks", pa.table({"n": list(range(100_000))}))
    bounds = Bounds(rows=20_000, seconds=10.0)
    job = job_of(app.plan(), Record("planned-1", 2, 1, ""), app.log, until=None, bounds=bounds)
    (place := tmp_path / "jobs" / "planned").mkdir(parents=True)
    # Of an earlier run.
    (place / EPOCH_ROWS).write_text('{"rows": 7}')
    reader, now = JobReader(job, place / "checkpoint"), 0.0
    monkeypatch.setattr("headrace.spark.epoch_planning.time.monotonic", lambda: now)
    offset, taken = reader.initialOffset(), []
    for seconds in (60.0, 20.0, 5.0, 1.0, 1.0, 1.0):
        end = json.loads(json.dumps(reader.latestOffset(offset, reader.getDefaultReadLimit())))
        taken.append(end["positions"]["clicks"]["0"] - offset["positions"]["clicks"].get("0", 0))
        shown = json.loads((place / EPOCH_ROWS).read_text())["rows"] if (place / EPOCH_ROWS).exists() else 20_000
        assert shown == taken[-1]
        offset, now = end, now + seconds
    # The first epoch starts workers, too; the third is near its target.
    assert taken == [20_000, 20_000, 10_000, 10_000, 20_000, 20_000]
    assert json.loads((place / EPOCH_ROWS).read_text()) == {
        "rows": 20_000, "why": "an epoch of 10,000 records took 1.0 s, and 10 s are wanted", "epoch": 4,
    }  # fmt: skip
