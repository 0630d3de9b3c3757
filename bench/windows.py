"""Windows against Spark's own operators: same Spark, same settings, same topics, same rows an epoch, run by run in turn.

The results of both are compared before anything is timed. An epoch's time is Spark's own measure of it (triggerExecution);
the first ones of each run, in which processes start, do not count. Sinks are topics of the same log, durable on both sides;
Headrace's is a view besides, its every record with a key, its epochs written once. Spark's state is in RocksDB, Headrace's in files.

usage: python bench/windows.py [--quick]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from _comparison import HERE, Comparison, Targets, perform
from _harness import Measure, at_least, at_most, interleave, options
from _latency import latency
from _payments import START, Payments, append, payments
from _runs import Run
from _spark_job import grouped, hopping, tumbling
from _spark_side import RESULT

from headrace.log.errors import UnknownTopic

SMALL, LARGE = 800_000, 3_200_000
MINUTE = 60_000_000
_DAY = 1_440
_HISTORY_CARDS = 500


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    pairs: int
    small_epochs: int
    large_epochs: int
    per_key_rows: int
    minute_rows: int
    keys: int
    latency_seconds: float
    starts: int


FULL = Size(
    pairs=3, small_epochs=16, large_epochs=8, per_key_rows=60_000, minute_rows=400_000, keys=10_000_000, latency_seconds=30, starts=3
)
QUICK = Size(
    pairs=1, small_epochs=12, large_epochs=5, per_key_rows=30_000, minute_rows=200_000, keys=2_000_000, latency_seconds=5, starts=1
)


class Windows(Comparison[Size]):
    """Each measure of windows and groups, on both sides in turn."""

    def windows(self, name: str, rows: int, epochs: int, skip: int) -> Measure:
        """Count and sum per card and minute against Spark's own operator."""
        topic = f"payments-{rows}"
        append(self.log, topic, Payments(rows * epochs).tables())
        measure = Measure(name, "rows/s")
        first = self.ours.run(topic, tumbling, rows), self.peer.windows(topic, rows)
        self._same(name, *(run.result for run in first))

        def once(run: Run, results: list[float], side: str) -> None:
            results.append(run.rate(skip))
            self._note(measure, run, side, skip)

        interleave(
            self.size.pairs,
            lambda: once(self.ours.run(topic, tumbling, rows), measure.ours, "headrace"),
            lambda: once(self.peer.windows(topic, rows), measure.peer, "spark"),
        )
        self.log.delete_topic(topic)
        return self._shown(measure)

    def per_key(self, name: str, ours: Measure) -> Measure:
        """The same against one Python call a key, which gets fewer rows an epoch: it would take minutes for one."""
        rows = self.size.per_key_rows
        append(self.log, "few", Payments(rows * 3, spacing=MINUTE // rows).tables())
        measure = Measure(name, "rows/s")
        run = self.peer.per_key("few", rows)
        latest = run.result.sort("n").unique(["card", "window_start"], keep="last")
        self._same(name, self.ours.run("few", tumbling, rows).result, latest)
        measure.ours.append(float(np.median(ours.ours)))
        measure.peer.append(run.rate(1))
        self._note(measure, run, "spark", 1)
        return self._shown(measure)

    def hopping(self, name: str) -> Measure:
        """Windows of a day every minute against windows of a minute: the same payments, an epoch a minute, a day of panes in state."""
        rows, minutes = self.size.minute_rows, 8
        append(self.log, "day", _history())
        append(self.log, "day", Payments(rows * minutes, spacing=MINUTE // rows, begin=START + _DAY * MINUTE).tables())
        measure = Measure(name, "s/epoch")

        def once(declare: Callable[..., Any], results: list[float]) -> Run:
            run = self.ours.run("day", declare, rows)
            behind = len(run.epochs) - minutes + 1
            results.append(run.cost(behind))
            self._note(measure, run, declare.__name__, behind)
            return run

        for _ in range(self.size.pairs):
            once(tumbling, measure.peer)
            last = once(hopping, measure.ours)
        self._right_days(name, last.result)
        return self._shown(measure)

    def keys(self, name: str) -> Measure:
        """An epoch of the same records with many keys in state and with few."""
        measure, few = Measure(name, "s/epoch"), 100_000
        touched = np.random.default_rng(3).choice(self.size.keys, few, replace=False)
        for keys, numbers, results in ((few, touched, measure.peer), (self.size.keys, np.arange(self.size.keys), measure.ours)):
            topic = f"keys-{keys}"
            append(self.log, topic, _each_once(numbers))
            run = self.ours.run_on(topic, grouped, _each_once(np.random.default_rng(4).choice(touched, 8 * 200_000)), 200_000)
            results.append(run.cost(2))
            self._note(measure, run, f"{keys:,}", 0)
            self.log.delete_topic(topic)
        return self._shown(measure)

    def first_result(self, name: str, home: Path) -> Measure:
        """From the start of the query until its first result is there, each in a fresh process."""
        append(self.log, "start", Payments(200_000).tables())
        measure = Measure(name, "s")
        for number in range(self.size.starts):
            for side, results in (("spark", measure.peer), ("headrace", measure.ours)):
                results.append(self._first(side, home, f"first-{side}-{number}"))
        return self._shown(measure)

    def _first(self, side: str, home: Path, view: str) -> float:
        if side == "spark":
            self.log.create_topic(view, partitions=2, schema=RESULT)
        command = [sys.executable, str(HERE / "_first_result.py"), side, str(home), "start", view]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            began = float(process.stdout.readline())
            while process.poll() is None and not self._written(view):
                time.sleep(0.01)
            seconds = time.time() - began
            process.wait()
        self._claim(self._written(view) > 0, f"{view}: there are results")
        return seconds

    def _written(self, topic: str) -> int:
        try:
            return sum(part["end"] for part in self.log.describe(topic)["partitions"])
        except UnknownTopic:
            return 0

    def _same(self, name: str, ours: pl.DataFrame, peer: pl.DataFrame) -> None:
        """Both sides give the same results, up to the last window that both have emitted."""
        start = pl.col("window_start").dt.epoch("us")
        left, right = (frame.select("card", start, "n", "total").sort("window_start", "card") for frame in (ours, peer))
        both = pl.col("window_start") <= min(left.item(-1, "window_start"), right.item(-1, "window_start"))
        left, right = left.filter(both), right.filter(both)
        self._claim(left.equals(right) and left.height * 2 > ours.height, f"{name}: {left.height:,} results are equal")

    def _right_days(self, name: str, result: pl.DataFrame) -> None:
        """The last window of a day has every payment of the day."""
        last = result.filter(pl.col("window_end") == pl.col("window_end").max())
        end = int(last.get_column("window_end")[0].timestamp()) * 1_000_000
        kept = pl.from_arrow(self.log.read("day", columns=["card", "amount", "at"]))
        assert isinstance(kept, pl.DataFrame)
        time_of = pl.col("at").dt.epoch("us")
        inside = kept.filter((time_of >= end - _DAY * MINUTE) & (time_of < end))
        expected = inside.group_by("card").agg(pl.len().cast(pl.Int64).alias("n"), pl.col("amount").sum().alias("total")).sort("card")
        self._claim(
            last.select("card", "n", "total").sort("card").equals(expected), f"{name}: {expected.height:,} cards of the last day are right"
        )

    def _note(self, measure: Measure, run: Run, side: str, skip: int) -> None:
        measure.note_most(f"{side}_state_megabytes", run.state_megabytes)
        measure.note_most(f"{side}_peak_megabytes", run.peak_megabytes)
        self.figures.setdefault("phases", {})[f"{measure.name}: {side}"] = run.shares(skip)


def _history() -> Iterator[pa.Table]:
    """A day of payments, some in every minute."""
    minutes = np.repeat(np.arange(_DAY), _HISTORY_CARDS)
    yield payments(np.tile(np.arange(_HISTORY_CARDS), _DAY), np.ones(len(minutes), np.int64), START + minutes * MINUTE)


def _each_once(cards: np.ndarray) -> Iterator[pa.Table]:
    for part in np.array_split(cards, max(1, len(cards) // 500_000)):
        yield payments(part, np.ones(len(part), np.int64), np.full(len(part), START))


def measured(comparison: Windows, home: Path) -> Targets:
    """Every figure that has a target."""
    size = comparison.size
    small = comparison.windows(
        "windowed count and sum, 0.8 million rows a batch, against Spark's own operator", SMALL, size.small_epochs, 4
    )
    large = comparison.windows(
        "windowed count and sum, 3.2 million rows a batch, against Spark's own operator", LARGE, size.large_epochs, 2
    )
    single = comparison.per_key("windowed count and sum, against transformWithState per key", small)
    day = comparison.hopping("hopping 24 h every minute against tumbling 1 minute, cost")
    keys = comparison.keys(f"a batch with {size.keys:,} keys in state against 100,000, cost")
    seen = latency(comparison.ours, "live", 1_000, size.latency_seconds)
    print(f"latency at 1,000 rows/s: {asdict(seen)}", flush=True)
    comparison.figures["latency"] = asdict(seen)
    first = comparison.first_result("time from run to the first result, against plain PySpark", home)
    return {
        small.name: at_least(small, 3), large.name: at_least(large, 5), single.name: at_least(single, 50), day.name: at_most(day, 3),
        keys.name: at_most(keys, 1.5), first.name: at_most(first, 1.5),
        "p50 latency from append to result at 1,000 rows/s, seconds": {"got": round(seen.p50, 3), "at_most": 1},
    }  # fmt: skip


if __name__ == "__main__":
    perform("windows", Windows, QUICK if options(__doc__ or "").quick else FULL, measured)
