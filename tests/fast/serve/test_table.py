"""A view in memory goes on from its cache after a restart, and without it when that is torn."""

import os
from random import Random

import polars as pl
import pytest

from headrace.core.columns.schema import schema
from headrace.log import Log
from headrace.log.files.cursor import ReadLimits
from headrace.serve.views import followed
from headrace.serve.views.catalog import Catalog
from headrace.serve.views.followed import Followed
from headrace.serve.views.follower import Follower
from tests.fast.serve.conftest import COLUMNS
from tests.support.examples import seeds

ROWS = [{"url": f"/{number}", "user": "ada", "views": number} for number in range(50)]


@pytest.fixture
def follower(home, tmp_path):
    logs = []

    def follow():
        log = Log(home / "log")
        logs.append(log)
        return Follower(log, home, tmp_path / "cache")

    yield follow
    for log in logs:
        log.close()


def rows_of(follower):
    table = follower.view("totals").table
    return {row["url"]: row["views"] for row in table.snapshot().lazy().collect().to_dicts()}


def test_a_restarted_server_reads_only_what_came_since(totals, follower):
    totals.epoch(ROWS)
    first = follower()
    first.step()
    first._save()
    totals.epoch(ROWS[:1], [ROWS[1]])
    second = follower()
    second._discover()
    restored = second.view("totals").table
    assert (restored.epoch, len(restored.snapshot().lazy().collect())) == (1, 50)
    assert sum(restored.positions.values()) == 50
    second.step()
    assert len(rows_of(second)) == 49


@pytest.mark.parametrize("damage", ["torn", "missing", "manifest", "other topic"])
def test_a_damaged_cache_is_read_anew_from_the_topic(totals, follower, tmp_path, damage, written):
    totals.epoch(ROWS)
    first = follower()
    first.step()
    first._save()
    files = tmp_path / "cache" / "totals"
    run = next(file for file in files.iterdir() if file.name.startswith("run"))
    if damage == "torn":
        run.write_bytes(run.read_bytes()[:-1])
    elif damage == "missing":
        run.unlink()
    elif damage == "manifest":
        (files / "manifest.json").write_text("{")
    else:
        totals.log.delete_topic("totals")
        totals = written()
        totals.epoch(ROWS[:3])
    second = follower()
    second.step()
    assert rows_of(second) == {row["url"]: row["views"] for row in (ROWS[:3] if damage == "other topic" else ROWS)}


def test_the_catalog_knows_the_views_of_every_job(totals, home):
    (view,) = Catalog(home).views()
    assert (view.app, view.name, view.key, view.columns.names) == ("totals-job", "totals", ("url",), ["url", "user", "views"])


def test_rows_by_a_part_of_the_key_are_found_by_an_index_where_a_run_is_large(written, follower, home):
    view = written("user string, day int, n int", ("user", "day"))
    view.epoch([{"user": f"u{number % 1000}", "day": number // 1000, "n": number} for number in range(120_000)])
    served = follower()
    served.step()
    snapshot = served.view("totals").table.snapshot()
    found = snapshot.where_equal(pl.DataFrame({"user": ["u7"]})).filter(pl.col("user") == "u7").collect()
    assert sorted(found["day"].to_list()) == list(range(120))
    assert snapshot.indexes._built


@pytest.mark.parametrize("seed", seeds(8))
def test_the_running_count_of_rows_is_that_of_the_rows(totals, follower, seed):
    draw, served = Random(seed), follower()
    for _ in range(12):
        changed = draw.sample(ROWS, draw.randrange(9))
        gone = [row for row in draw.sample(ROWS, draw.randrange(9)) if row not in changed]
        totals.epoch(changed, gone)
        if draw.random() < 0.2:
            served._save()
            served = follower()
        served.step()
        table = served.view("totals").table
        assert table.rows == table.snapshot().rows == table.snapshot().lazy().collect().height


COMPACTED = {"cleanup.policy": "compact", "segment.bytes": 1024}


def counted(views):
    return [{**row, "views": views} for row in ROWS]


def test_an_epoch_that_compaction_overtakes_while_it_is_read_is_not_shown(home, written, follower, monkeypatch):
    with Log(home / "log") as log:
        log.create_topic("totals", partitions=1, schema=schema(COLUMNS), config=COMPACTED)
    totals = written(tasks=1)
    totals.epoch(counted(1))
    served = follower()
    served.step()
    totals.epoch(counted(2))

    def overtaken(followed, ends):
        monkeypatch.undo()
        totals.epoch(counted(3)[:25])
        totals.epoch([])
        totals.epoch(counted(4)[:1])
        assert any(report.compacted.records_removed for report in totals.log.maintain("totals", force=True))
        return followed._read(ends)

    monkeypatch.setattr(Followed, "_read", overtaken)
    served.step()
    assert served.view("totals").table.epoch == 5
    assert rows_of(served) == {row["url"]: 4 if place == 0 else 3 if place < 25 else 2 for place, row in enumerate(ROWS)}


def test_an_epoch_larger_than_a_chunk_is_told_whole_to_subscribers(totals, follower, monkeypatch):
    totals.epoch(counted(1))
    served = follower()
    served.step()
    monkeypatch.setattr(followed, "_CHUNK", ReadLimits(rows=7))
    totals.epoch(counted(2))
    served.step()
    table = served.view("totals").table
    assert table.changes_since(1).frame.height == len(ROWS)
    assert set(rows_of(served).values()) == {2}


def test_records_that_are_large_are_read_to_the_end(totals, follower, monkeypatch):
    monkeypatch.setattr(followed, "_CHUNK", ReadLimits(bytes=1))
    for number in range(5):
        totals.epoch(ROWS[number * 10 : number * 10 + 10])
    served = follower()
    served.step()
    assert rows_of(served) == {row["url"]: row["views"] for row in ROWS}


def test_commits_within_one_tick_of_the_clock_are_seen(totals, follower):
    totals.epoch(counted(1))
    served = follower()
    served.step()
    commits = totals.place.checkpoint / "commits"
    seen = commits.stat()
    totals.epoch(counted(2))
    os.utime(commits, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    served.step()
    assert served.view("totals").table.epoch == 2


def test_a_view_that_is_read_anew_stays_known(totals, follower):
    totals.epoch(counted(1))
    totals.epoch(counted(2))
    served = follower()
    served.step()
    (totals.place.checkpoint / "commits" / "1").unlink()
    known = []
    served._listener = lambda name: known.append(served.view(name))
    served.step()
    assert [view.ready for view in known] == [False]
    served.step()
    assert served.view("totals").table.epoch == 1


def test_a_server_goes_on_while_the_files_of_a_job_are_removed(totals, follower):
    totals.epoch(counted(1))
    served = follower()
    served.step()
    offsets, commits = (totals.place.checkpoint / kind for kind in ("offsets", "commits"))
    (offsets / "0").unlink()
    os.utime(commits)
    served.step()
    served.step()
    assert (served.view("totals").table.epoch, rows_of(served)) == (0, {})
    totals.epoch(counted(2))
    served.step()
    assert set(rows_of(served).values()) == {2}
