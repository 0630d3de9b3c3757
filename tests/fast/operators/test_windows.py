"""Tumbling and hopping windows against plain Python, under disorder, lateness, corrections, splits and restarts."""

from __future__ import annotations

import random
from collections import defaultdict

import polars as pl
import pytest

from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.windows.paned import Windows, WindowSpec
from tests.fast.operators.stories import AGGREGATES, CHANGING, Record, changelog, entered, frame, run, story, summary
from tests.support.examples import seeds

Key = tuple[str | None, int]


def performed(seed: int) -> tuple[dict[Key, tuple[int, ...]], dict[Key, list[tuple[str, int]]], dict[Key, tuple[int, ...]]]:
    chance = random.Random(seed)
    hop = chance.choice([1, 2, 5, 10])
    size = hop * chance.choice([1, 1, 2, 3, 7])
    spec = WindowSpec(size, hop, chance.choice([0, 3]), ("k",), AGGREGATES, until=chance.choice([0, 0, 10, 40]))
    told, store, windows = story(seed), MemoryStore(), Windows(spec)
    others = [Windows(spec), Windows(spec)]
    results: dict[Key, tuple[int, ...]] = {}
    panes: dict[Key, list[tuple[str, int]]] = defaultdict(list)
    accepted: list[tuple[Record, int]] = []

    def take(frames: list[pl.DataFrame]) -> None:
        for row in pl.concat(frames).to_dicts() if frames else []:
            key = (row["k"], round(row["window_start"].timestamp() * 1e6))
            value = (row["n"], row["total"], row["top"], row["latest"])
            if row["_op"] > 0:
                assert key not in results, f"seed {seed}: {key} is emitted twice without being retracted"
                results[key] = value
                panes[key].append((row["pane"], row["revision"]))
            else:
                assert results.pop(key) == value, f"seed {seed}: {key} is retracted with another value than it had"
                assert (row["pane"], row["revision"]) == panes[key][-1], f"seed {seed}: {key} is retracted as another pane than it was"

    for time, records in told.epochs:
        arrived = frame(records)
        good = arrived.filter(~spec.is_late(time))
        accepted += [(record, time.before) for record in good.rows()]
        cut = chance.randrange(len(good) + 1)
        parts = [entered(spec, part) for part in (good[:cut], good[cut:]) if len(part)]
        take(run(windows, parts, time, store))
        if chance.random() < 0.5:
            # A worker that was here before comes back with what it knew then, after an epoch that may have failed in between.
            manifest = windows.manifest()
            if chance.random() < 0.3:
                run(windows, parts, EpochTime(time.epoch + 1, time.after, time.after + 1), MemoryStore(dict(store.blobs)))
            others.append(windows)
            windows = others.pop(chance.randrange(len(others)))
            windows.restore(manifest, store)
    take(run(windows, [], told.end, store))
    assert not store.blobs, "every window has fired and can't be corrected any more, yet state is left"
    return results, panes, expected(spec, accepted)


def expected(spec: WindowSpec, accepted: list[tuple[Record, int]]) -> dict[Key, tuple[int, ...]]:
    windows: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for (key, time, value), watermark in accepted:
        start = (time - spec.offset) // spec.hop * spec.hop + spec.offset
        while start + spec.size > time:
            if start + spec.size + spec.until > watermark:
                windows[key, start].append((time, value))
            start -= spec.hop
    return {key: summary(records) for key, records in windows.items()}


@pytest.mark.parametrize("block", range(4))
def test_results_equal_plain_python_under_disorder_lateness_and_restarts(block: int) -> None:
    for seed in seeds(8, block):
        results, panes, wanted = performed(seed)
        assert results == wanted, f"seed {seed}"
        for key, given in panes.items():
            assert [revision for _, revision in given] == list(range(len(given))), f"seed {seed}, window {key}: {given}"
            assert all(pane == "late" for pane, revision in given if revision > 0), f"seed {seed}, window {key}: {given}"


def test_a_window_that_fires_because_the_stream_is_silent_says_so() -> None:
    spec = WindowSpec(10, 10, 0, ("k",), AGGREGATES)
    windows, store = Windows(spec), MemoryStore()
    run(windows, [entered(spec, frame([("a", 1, 5)]))], EpochTime(1, BEGINNING, 1), store)
    (result,) = run(windows, [], EpochTime(2, 1, 10, idle=True), store)
    assert result["pane"].to_list() == ["idle"]


def test_what_fired_in_silence_is_retracted_as_such_also_after_a_restart() -> None:
    spec = WindowSpec(10, 10, 0, ("k",), AGGREGATES, until=100)
    windows, store = Windows(spec), MemoryStore()
    run(windows, [entered(spec, frame([("a", 1, 5)]))], EpochTime(1, BEGINNING, 1), store)
    run(windows, [], EpochTime(2, 1, 10, idle=True), store)
    manifest, windows = windows.manifest(), Windows(spec)
    windows.restore(manifest, store)
    results = pl.concat(run(windows, [entered(spec, frame([("a", 2, 5), ("b", 2, 5)]))], EpochTime(3, 10, 11), store))
    assert sorted(results.select("k", "_op", "pane").rows()) == [("a", -1, "idle"), ("a", 1, "late"), ("b", 1, "late")]
    results = pl.concat(run(windows, [entered(spec, frame([("b", 3, 5)]))], EpochTime(4, 11, 111), store))
    assert results.select("k", "_op", "pane").rows() == [("b", -1, "late"), ("b", 1, "late")]
    assert windows.size.rows == 0


def test_a_window_of_1440_panes_merges_few_frames() -> None:
    minute = 60_000_000
    spec = WindowSpec(1440 * minute, minute, 0, ("k",), AGGREGATES)
    windows, store = Windows(spec), MemoryStore()
    records = [("a", at * minute, 1) for at in range(3000)]
    run(windows, [entered(spec, frame(records))], EpochTime(1, 2999 * minute, 2999 * minute), store)
    (result,) = run(windows, [], EpochTime(2, 2999 * minute, 3000 * minute), store)
    assert result["n"].to_list() == [1440]
    assert len(windows._tree._cover(1561 * minute, 3000 * minute)) <= 22


def test_a_window_whose_records_were_all_retracted_has_no_result() -> None:
    spec = WindowSpec(10, 10, 0, ("k",), CHANGING, until=100)
    windows, store = Windows(spec), MemoryStore()

    def given(records: list[tuple[str | None, int, int, int]], time: EpochTime) -> list[tuple[str, int, int, int]]:
        results = run(windows, [entered(spec, changelog(records))] if records else [], time, store)
        return [row for result in results for row in result.select("k", "n", "revision", "_op").rows()]

    assert given([("a", 1, 5, 1), ("b", 1, 5, 1)], EpochTime(1, 0, 5)) == []
    assert given([("a", 1, 5, -1)], EpochTime(2, 5, 10)) == [("b", 1, 0, 1)]
    assert given([("b", 1, 5, -1)], EpochTime(3, 10, 11)) == [("b", 1, 0, -1)]
    assert given([("b", 1, 6, 1)], EpochTime(4, 11, 12)) == [("b", 1, 1, 1)]
    assert given([("a", 1, 7, 1)], EpochTime(5, 12, 13)) == [("a", 1, 0, 1)]


def test_everything_fires_at_the_end_of_time() -> None:
    spec = WindowSpec(10, 5, 0, ("k",), AGGREGATES)
    windows, store = Windows(spec), MemoryStore()
    results = run(windows, [entered(spec, frame([("a", 7, 1)]))], EpochTime(1, BEGINNING, END), store)
    assert sorted(row["window_start"].timestamp() * 1e6 for row in pl.concat(results).to_dicts()) == pytest.approx([0, 5])
