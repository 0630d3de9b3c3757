"""`headrace why --row`: the records that made a row, by replay; together they make the very row that the job made."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random

import polars as pl
import pyarrow as pa
import pytest

import headrace as hr
from headrace.cli.commands import execute
from headrace.connectors.log.output import LogOutput
from headrace.connectors.output import Changes, Writer
from headrace.core.clock import ManualClock, to_microseconds
from headrace.core.errors import JobError, PlanError
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.outputs import create_outputs
from headrace.ops.why.keys import parsed_key
from headrace.ops.why.row import story_of
from headrace.plan.topics import late_topic
from tests.support.examples import seeds
from tests.support.in_process import InProcess

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
APP = """
import headrace as hr

app = hr.App("shop", home={home!r})
orders = app.stream(
    "orders", "product bigint, country string, price double, at timestamp", key="product", time="at",
    watermark=hr.bounded("30 seconds", idle="1 minute"),
    partitions=2,
)
dutch = orders.where("country = 'NL'")
app.view("sold", dutch.window(hr.tumbling("1 minute"), by="product").agg(sold="count(*)", total="sum(price)"))
app.view("hopping", orders.window(hr.hopping("2 minutes", every="1 minute"), by="product").agg(sold="count(*)"))
app.view("visits", orders.window(hr.session("20 seconds"), by="product").agg(orders="count(*)"))
app.view("seen", orders.with_columns(land="lower(country)").group("land", ttl=None).agg(orders="count(*)"))
app.view("latest", orders.to_table("product"))
app.view("once", orders.dedup("product", ttl="1 hour").group("country", ttl=None).agg(products="count(*)"))
"""


class Job:
    """A job that ran without a JVM; what it made is in its log, as a job on Spark leaves it."""

    def __init__(self, home):
        self.home, names = home, {}
        self.file = home.parent / "app.py"
        self.file.write_text(APP.format(home=str(home)))
        exec(self.file.read_text(), names)
        self.app = names["app"]
        self.plan, self.log = self.app.plan(), self.app.log
        self.place = JobDirectory(home, "shop")
        self.run = InProcess(self.app, ManualClock(to_microseconds(NOON)))

    def send(self, rows):
        with self.log.producer() as producer:
            for row in rows:
                producer.send("orders", row)

    def catch_up(self, rows=None):
        while self.run.epoch(rows) is not None:
            pass

    def finish(self):
        """Leave on disk what a job leaves."""
        create_outputs(self.log, self.plan, 1)
        for output in self.plan.outputs:
            if rows := self.run.driver.rows(output.name):
                schema = pl.DataFrame(output.node.columns.empty_table()).schema
                written = LogOutput(self.log.path, output.name, output.folds_by)
                written.write(Writer("job-1", output.name, 0, 1), 1, Changes(pl.DataFrame(rows, schema=schema)), None)
        with self.log.producer() as producer:
            for row in self.run.driver.late("orders"):
                producer.send(late_topic("orders"), row)
        for kind, text in (("offsets", f"v1\n{{}}\n{json.dumps(self.run.reached.to_json())}"), ("commits", "v1\n{}")):
            (self.place.checkpoint / kind).mkdir(parents=True, exist_ok=True)
            (self.place.checkpoint / kind / str(self.run.reached.epoch - 1)).write_text(text)

    def story(self, view, **wanted):
        output = next(output for output in self.plan.outputs if output.name == view)
        types = output.node.columns
        return story_of(
            self.plan, view, {name: pa.scalar(value, types.field(name).type) for name, value in wanted.items()}, self.place, self.log
        )


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path / "home")
    yield made
    made.log.close()


def order(product, second, country="NL", price=1.0):
    return {"product": product, "country": country, "price": price, "at": NOON + timedelta(seconds=second)}


def test_a_row_is_told_with_the_records_that_made_it_and_what_each_step_made_of_them(job):
    job.send([order(1, 0, price=2.0), order(2, 1), order(1, 2, "DE"), order(1, 5, price=3.0), order(1, 61), order(2, 200)])
    job.catch_up()
    job.finish()
    story = job.story("sold", product=1, window_start=NOON)
    assert story.exact
    assert [(row["sold"], row["total"]) for row in story.rows] == [(2, 5.0)]
    assert [(one.record["price"], one.counts) for one in story.records] == [(2.0, True), (1.0, False), (3.0, True)]
    assert story.records[1].steps == {"orders": "out", "orders.where": "filtered"}
    assert set(story.records[0].steps.values()) == {"out"}
    assert len({(one.partition, one.offset) for one in story.records}) == 3


def test_a_late_record_has_a_part_in_no_row_and_is_told_as_late(job):
    job.send([order(1, 0), order(1, 1), order(2, 0)])
    job.catch_up()
    job.send([order(1, 300), order(2, 300)])
    job.catch_up()
    job.send([order(1, 2, price=9.0)])
    job.catch_up()
    job.finish()
    story = job.story("sold", product=1, window_start=NOON)
    assert story.exact
    assert [(one.record["price"], one.counts) for one in story.records] == [(1.0, True), (1.0, True), (9.0, False)]
    assert "late" in story.records[2].steps.values()


def test_records_are_found_by_a_key_that_their_stream_does_not_have(job):
    job.send([order(1, 0, "NL"), order(2, 1, "nl"), order(3, 2, "DE"), order(4, 3, "Nl")])
    job.catch_up()
    job.finish()
    story = job.story("seen", land="nl")
    assert story.exact
    assert [one.record["product"] for one in story.records] == [1, 2, 4]


def test_a_duplicate_is_told_as_one(job):
    job.send([order(1, 0), order(1, 1), order(2, 2)])
    job.catch_up()
    job.finish()
    story = job.story("once", country="NL")
    assert story.exact
    assert [one.counts for one in story.records] == [True, False, True]
    assert "duplicate" in story.records[1].steps.values()


def test_a_key_without_a_row_is_told_with_the_records_that_did_not_make_one(job):
    job.send([order(7, 0, "DE"), order(7, 1, "FR"), order(1, 200)])
    job.catch_up()
    job.finish()
    story = job.story("sold", product=7)
    assert (story.exact, list(story.rows)) == (True, [])
    assert [one.steps["orders.where"] for one in story.records] == ["filtered", "filtered"]


def test_records_that_retention_has_removed_are_missing_and_that_is_told(job):
    job.send([order(1, second) for second in range(6)])
    job.catch_up()
    job.finish()
    for partition in range(2):
        end = job.log.partition(job.log.topic("orders"), partition).state().visible
        job.log.delete_records("orders", partition, end // 2)
    story = job.story("latest", product=1)
    assert story.exact
    counted = job.story("seen", land="nl")
    assert not counted.exact
    assert counted.begins == {"orders": 3}
    assert "begins at offset 3" in str(counted)


@pytest.mark.parametrize("seed", seeds(8))
def test_the_records_of_any_row_make_that_row(job, seed):
    draw = Random(seed)
    now = 0
    for _ in range(draw.randrange(1, 6)):
        rows = []
        for _ in range(draw.randrange(1, 12)):
            now += draw.randrange(20)
            rows.append(order(draw.randrange(3), now - draw.choice([0, 0, 0, 50]), draw.choice(["NL", "DE"]), float(draw.randrange(9))))
        job.send(rows)
        job.catch_up(draw.choice([None, 3]))
    job.finish()
    looked = 0
    # Nothing tells which records missed some of their windows and not all.
    missed = sum(step["partly_late"] for step in job.run.driver.accounting())
    for output in job.plan.outputs:
        for row in job.run.driver.rows(output.name):
            story = job.story(output.name, **{name: row[name] for name in output.folds_by})
            if output.name == "hopping" and not story.exact:
                (replayed,) = story.replayed
                assert 0 < replayed["sold"] - row["sold"] <= missed
                assert "partly late" in str(story)
            elif output.name == "visits" and not story.exact:
                # A record that came after a session was closed began another one, though it is within the gap. That one has a row, or is
                # still open; then so is the one session of the replay.
                overlapping = sum(_overlap(row, other) for other in job.run.driver.rows("visits"))
                assert overlapping > 1 or not story.replayed, str(story)
                assert "session" in str(story)
            else:
                assert story.exact, str(story)
            if "sold" in row and output.name == "sold":
                assert sum(one.counts for one in story.records) == row["sold"]
            looked += 1
    # The first record is never late, and has a part in a row of each view that does not wait for a window.
    assert looked >= 3


def _overlap(one, other):
    ends_apart = one["window_end"] <= other["window_start"] or other["window_end"] <= one["window_start"]
    return one["product"] == other["product"] and not ends_apart


def test_the_command_tells_a_row_in_words_and_for_programs(job, capsys):
    job.send([order(1, 0), order(1, 1, "DE"), order(2, 100), order(1, 100)])
    job.catch_up()
    job.finish()
    assert execute(["why", str(job.file), "sold", "--row", "1/2026-01-01T12:00:00Z", "--json"]) == 0
    first, *records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (first["exact"], first["rows"][0]["sold"]) == (True, 1)
    assert [(one["offset"] >= 0, one["steps"].get("orders.where")) for one in records] == [(True, "out"), (True, "filtered")]
    assert execute(["why", str(job.file), "--row", "1"]) != 0
    assert execute(["why", str(job.file), "nothing", "--row", "1"]) != 0


def test_what_cannot_be_told_is_refused(job, tmp_path):
    with pytest.raises(JobError, match="finished no epoch"):
        job.story("seen", land="nl")
    job.send([order(1, 0)])
    job.catch_up()
    job.finish()
    with pytest.raises(PlanError, match="no view"):
        story_of(job.plan, "other", {}, job.place, job.log)
    with pytest.raises(PlanError, match="3 parts"):
        parsed_key("sold", ("product", "window_start"), pa.schema([]), "1/2/3")
    with pytest.raises(PlanError, match="no bigint"):
        parsed_key("sold", ("product",), pa.schema([("product", pa.int64())]), "x")
    app = hr.App("elsewhere", home=tmp_path / "elsewhere")
    stream = app.stream("clicks", "url string", source=hr.kafka("clicks", servers="127.0.0.1:1"))
    app.view("per_url", stream.group("url", ttl=None).agg(n="count(*)"))
    with pytest.raises(PlanError, match="another system"):
        story_of(app.plan(), "per_url", {}, job.place, job.log)
