"""Rows are found when they are due, all of them and no others, by a look at these alone."""

from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import polars as pl
import pytest

import headrace as hr
from headrace.operators.state.due_times import DueTimes
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.store import MemoryStore

KEYS = ["a"]


def state() -> KeyedState:
    return KeyedState("k", KEYS, due=pl.col("at"), soon=pl.col("at") - 5)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_due_is_what_a_look_at_every_row_finds(seed):
    """Rows come, change, go and expire, with marks, nulls and restored states in between."""
    random, store, kept = Random(seed), MemoryStore(), state()
    manifest = kept.manifest()
    for moment in range(0, 300, 3):
        count = random.randint(0, 30)
        keys = random.sample(range(120), count)
        times = [random.choice([None, moment + random.randint(-5, 90)]) for _ in keys]
        gone = [random.random() < 0.1 for _ in keys]
        rows = pl.DataFrame({"a": keys, "at": times, GONE: gone}, schema={"a": pl.Int64, "at": pl.Int64, GONE: pl.Boolean})
        kept.put(rows, store)
        if random.random() < 0.1:
            # A worker that did not have the shard, or had its state before a failed epoch.
            manifest = kept.manifest()
            kept = state() if random.random() < 0.5 else kept
            kept.restore(manifest, store)
        for kind, shift in (("due", 0), ("soon", -5)):
            found, present = kept.reached(kind, moment), kept.all()
            expected = None if present is None else present.filter(pl.col("at") + shift <= moment)
            assert (found is None) == (expected is None or expected.is_empty())
            if found is not None and expected is not None:
                assert found.sort("a").equals(expected.sort("a"))
        over = kept.reached("due", moment)
        if over is not None and random.random() < 0.7:
            kept.put(over.with_columns(pl.lit(True).alias(GONE)), store)


class Seen(np.ndarray):
    """An array that counts how many of its elements are looked at."""

    looked = 0

    def __getitem__(self, places):
        Seen.looked += np.size(places)
        return np.asarray(self)[places]


def test_only_rows_that_are_due_are_looked_at():
    times = DueTimes(pl.Series(np.random.default_rng(5).permutation(100_000)))
    alive = np.ones(100_000, dtype=bool).view(Seen)
    for moment in range(99, 10_000, 100):
        before, Seen.looked = Seen.looked, 0
        due = times.reached(moment, alive)
        assert len(due) == 100
        # Those that were due before, and are gone now, are passed over once.
        assert Seen.looked <= 200
        alive[due] = False
    assert before


def test_a_row_that_stays_though_it_is_due_is_found_again():
    times, alive = DueTimes(pl.Series([10, 20, 30])), np.ones(3, dtype=bool)
    assert times.reached(20, alive).tolist() == [0, 1]
    alive[0] = False
    assert times.reached(20, alive).tolist() == [1]
    assert times.reached(30, alive).tolist() == [1, 2]


def gathered(event, state, timers):
    timers.after("1 hour")


def silent(timer):
    yield {"k": timer.key.k}


OPERATORS = {
    "session": lambda s: s.window(hr.session("1 hour"), by="k").agg(n="count(*)"),
    "dedup": lambda s: s.dedup("k", ttl="1 hour").to_table("k", ttl=None),
    "group": lambda s: s.group("k", ttl="1 hour").agg(n="count(*)"),
    "table": lambda s: s.to_table("k", ttl="1 hour"),
    "previous": lambda s: s.with_previous("at", by="k", ttl="1 hour").to_table("k"),
    "timers": lambda s: s.process(gathered, by="k", returns="k bigint", on_timer=silent, ttl=None).to_table("k"),
    "process": lambda s: s.process(lambda event: event, by="k", state="n int", ttl="1 hour").to_table("k"),
    "pattern": lambda s: s.match(by="k", pattern="A B", within="1 hour", measures={"ended": "B.at"}).to_table("k"),
    "join": lambda s: s.join_within(s.select("k, at as met"), on="k", within=("0s", "1 hour")).to_table("k"),
}


@pytest.mark.parametrize("kind", OPERATORS)
def test_an_epoch_in_which_a_key_is_due_looks_at_no_other_keys(kind, tmp_path, monkeypatch):
    looked = []
    for keys in (200, 2_000):
        app = hr.App(f"{kind}{keys}", home=tmp_path)
        stream = app.stream("s", schema="k bigint, at timestamp", time="at", watermark=hr.bounded("0 seconds"))
        app.view(f"v{keys}", OPERATORS[kind](stream))
        with hr.TestDriver(app, shards=1) as driver:
            start = datetime(2026, 1, 1, tzinfo=UTC)
            # Two keys are due after an hour, all others later.
            driver.send("s", [{"k": key, "at": start + timedelta(minutes=50 * (key > 1))} for key in range(keys)])
            # What waited for the watermark goes on.
            driver.send("s", [{"k": 5, "at": start + timedelta(minutes=55)}])
            seen = []
            filtered = pl.DataFrame.filter

            def spying(frame, *conditions, seen=seen, filtered=filtered, **options):
                seen.append(frame.height)
                return filtered(frame, *conditions, **options)

            monkeypatch.setattr(pl.DataFrame, "filter", spying)
            driver.send("s", [{"k": 5, "at": start + timedelta(minutes=65)}])
            monkeypatch.undo()
            looked.append(sum(seen))
    assert looked[0] == looked[1] < 200
