"""A view in memory goes on from its cache after a restart, and without it when that is torn."""

from random import Random

import polars as pl
import pytest

from headrace.log import Log
from headrace.serve.views.catalog import Catalog
from headrace.serve.views.follower import Follower
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
