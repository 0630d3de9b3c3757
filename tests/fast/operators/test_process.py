"""Logic of the user's own against plain Python: whatever the order, batches and restarts."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from headrace.core.columns.schema import schema
from headrace.core.errors import JobError
from headrace.operators.contract import Arrived
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.process.operator import Processing, ProcessSpec
from headrace.operators.process.work import Declared
from headrace.operators.state.store import MemoryStore
from headrace.plan.process import Logic
from tests.fast.operators.stories import Record, Story, by_key, story
from tests.support.examples import seeds

GAP, BAD = 9, 13
COLUMNS = schema("k string, x long")
Row = tuple[Any, ...]


def gather(event: Any, state: Any, timers: Any) -> None:
    """Add up until a key has been silent for a while; then the timer, which every event moves, gives the sum."""
    state.total = (state.total or 0) + event.x
    state.seen = [*(state.seen or []), event.x]
    timers.after(timedelta(microseconds=GAP))
    if event.x == BAD:
        raise ValueError("unlucky")


def silent(timer: Any, state: Any) -> Any:
    yield {"k": timer.key.k, "total": state.total, "seen": state.seen}
    state.clear()


def sessions(events: pl.DataFrame, states: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same over frames: each run of events without a gap, together with what the state has of it."""
    gap = pl.duration(microseconds=GAP)
    carried = states.filter(pl.col("total").is_not_null()).select(
        "k", pl.lit(None, pl.Int64).alias("x"), (pl.coalesce("timer_at", "fired_at") - gap).alias("_time"), "total", "seen"
    )
    good = events.filter(pl.col("x") != BAD).with_columns(
        pl.lit(None, pl.Int64).alias("total"), pl.lit(None, pl.List(pl.Int64)).alias("seen")
    )
    rows = pl.concat([carried, good.select(carried.columns)])
    ordered = rows.with_columns(pl.int_range(pl.len()).alias("n")).sort("k", "_time", "n")
    begins = (pl.col("_time") - pl.col("_time").shift(1).over("k") >= gap).fill_null(True)
    runs = ordered.with_columns(begins.cum_sum().alias("run"))
    seen = pl.concat_list(pl.col("seen").fill_null([]), pl.concat_list("x").list.drop_nulls())
    sums = runs.with_columns(seen.alias("seen"), pl.col("total").fill_null(0) + pl.col("x").fill_null(0)).group_by(
        "k", "run", maintain_order=True
    )
    made = sums.agg(pl.col("total").sum(), pl.col("seen").explode(), (pl.col("_time").max() + gap).alias("timer_at"))
    last = made.with_columns((pl.col("run") == pl.col("run").max().over("k")).alias("last"))
    # The last run of a key may go on, unless its timer has fired and nothing came to it.
    fired = states.filter(pl.col("fired_at").is_not_null()).join(good, on="k", how="anti", nulls_equal=True)
    quiet = last.join(fired, on="k", how="semi", nulls_equal=True)
    over = pl.concat([last.filter(~pl.col("last")), quiet])
    results = over.select("k", "total", "seen", pl.col("timer_at").alias("_time"))
    kept = last.filter("last").join(quiet, on="k", how="anti", nulls_equal=True)
    return results, kept.select("k", "total", "seen", "timer_at")


def spec_of(logic: Logic, *, in_order: bool = True, ttl: int | None = None, lateness: int = 0) -> ProcessSpec:
    state = schema("total long, seen array<long>")
    returns = pa.schema([COLUMNS.field("k"), *state])
    return ProcessSpec(Declared("gather", ("k",), COLUMNS, state, returns, logic, in_order, ttl), lateness)


def frame(records: list[tuple[int, Record]]) -> pl.DataFrame:
    rows = [(key, time, value, 0, offset) for offset, (key, time, value) in records]
    kinds = {"k": pl.String, "_time": pl.Int64, "x": pl.Int64, "_partition": pl.Int32, "_offset": pl.Int64}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def perform(spec: ProcessSpec, told: Story, chance: random.Random) -> tuple[list[Row], list[Record], int]:
    """What is emitted, what was in time, and how many were bad, over epochs cut and handed over anyhow, with restarts."""
    store, state, given, accepted, bad, offset = MemoryStore(), Processing(spec), [], [], 0, 0
    for time, records in [*told.epochs, (told.end, ())]:
        placed = list(enumerate(records, offset))
        offset += len(records)
        cut = chance.randrange(len(records) + 1)
        parts = [spec.enter(frame(part), time) for part in (placed[:cut], placed[cut:]) if part]
        accepted += [record for record in records if record[1] >= time.before - spec.lateness]
        arrived = [part.rows for part in parts]
        chance.shuffle(arrived)
        outcome = state.run(Arrived(arrived), time, store)
        given += [row for result in outcome.results for row in result.select("k", "total", "seen", "_time").rows()]
        bad += 0 if outcome.bad is None else outcome.bad.height
        if chance.random() < 0.4:
            manifest, state = state.manifest(), Processing(spec)
            state.restore(manifest, store)
    assert state.size.rows == 0
    return given, accepted, bad


def wanted(records: list[Record]) -> list[Row]:
    found: list[Row] = []
    for key, pairs in by_key(records).items():
        run: list[int] = []
        until = None
        for time, value in sorted(pairs, key=lambda pair: pair[0]):
            if value == BAD:
                continue
            if until is not None and time >= until:
                found.append((key, sum(run), run, until))
                run = []
            run, until = [*run, value], time + GAP
        if run:
            found.append((key, sum(run), run, until))
    return sorted(found, key=str)


@pytest.mark.parametrize("logic", [Logic(gather, silent), Logic(sessions, vectorized=True)], ids=["per key", "vectorized"])
def test_events_and_timers_take_turns_in_event_time(logic: Logic) -> None:
    for seed in seeds(30):
        chance = random.Random(seed)
        spec = spec_of(logic, ttl=chance.choice([None, 50]), lateness=chance.choice([0, 0, 15]))
        given, accepted, bad = perform(spec, story(seed), chance)
        assert sorted(given, key=str) == wanted(accepted), f"seed {seed}"
        assert bad == (0 if logic.vectorized else sum(value == BAD for *_, value in accepted))


def held(function: Callable[..., Any], epochs: list[tuple[EpochTime, list[Record]]], **options: Any) -> tuple[list[Row], Processing]:
    spec, store, given = spec_of(Logic(function, options.pop("on_timer", None)), **options), MemoryStore(), []
    state = Processing(spec)
    for time, records in epochs:
        outcome = state.run(Arrived([spec.enter(frame(list(enumerate(records))), time).rows] if records else []), time, store)
        given += [row for result in outcome.results for row in result.select("k", "total", "_time").rows()]
    return given, state


def running(event: Any, state: Any) -> dict[str, Any]:
    state.total = (state.total or 0) + event.x
    return {"k": event.k, "total": state.total}


def test_a_key_is_new_again_when_its_time_to_live_has_passed_however_epochs_are_cut() -> None:
    records = [("a", 0, 1), ("a", 19, 2), ("a", 39, 4), ("a", 58, 8)]
    whole = held(running, [(EpochTime(1, BEGINNING, 59), records)], ttl=20)
    moments = [BEGINNING, 1, 20, 40, 59]
    each = held(running, [(EpochTime(n, moments[n], moments[n + 1]), [record]) for n, record in enumerate(records)], ttl=20)
    assert whole[0] == each[0] == [("a", 1, 0), ("a", 3, 19), ("a", 4, 39), ("a", 12, 58)]


def test_events_in_the_order_of_arrival_do_not_wait() -> None:
    records = [("a", 9, 1), ("a", 3, 2)]
    given, state = held(running, [(EpochTime(1, BEGINNING, BEGINNING), records)], in_order=False)
    assert given == [("a", 1, 9), ("a", 3, 3)]
    assert state.size.rows == 1


def test_a_timer_that_sets_itself_again_ends_with_the_input() -> None:
    def start(event: Any, state: Any, timers: Any) -> None:
        state.total = 0
        timers.after("10 us", "tick")

    def tick(timer: Any, state: Any, timers: Any) -> dict[str, Any]:
        state.total += 1
        timers.after("10 us", timer.name)
        return {"k": timer.key.k, "total": state.total}

    given, _ = held(start, [(EpochTime(1, BEGINNING, 25), [("a", 0, 0)]), (EpochTime(2, 25, END), [])], on_timer=tick)
    assert given == [("a", 1, 10), ("a", 2, 20), ("a", 3, 30)]


def test_a_function_over_frames_that_raises_stops_with_its_step_and_line() -> None:
    def broken(events: pl.DataFrame, states: pl.DataFrame) -> Any:
        return events.select("missing"), states

    spec = spec_of(Logic(broken, vectorized=True))
    arrived = Arrived([spec.enter(frame([(0, ("a", 1, 1))]), EpochTime(1, BEGINNING, 5)).rows])
    with pytest.raises(JobError, match=r"'gather' cannot continue: ColumnNotFoundError.* \(test_process.py:\d+\)"):
        Processing(spec).run(arrived, EpochTime(1, BEGINNING, 5), MemoryStore())
