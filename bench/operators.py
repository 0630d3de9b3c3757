"""Steps by key against Spark's own, and against what they promise: same Spark, same topics, same rows an epoch, run by run in turn.

Results are compared before anything is timed. An epoch's time is Spark's own measure of it (triggerExecution); the first ones of each
run, in which processes start and state fills, do not count.

usage: python bench/operators.py [--quick]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from _comparison import Comparison, Targets, perform
from _harness import Measure, at_least, interleave, options
from _leaderboard import Held, held
from _payments import COLUMNS, START, append, payments
from _runs import Run
from _spark_job import tumbling

import headrace as hr
from headrace.api.stream import Stream
from headrace.log import Log

MINUTE = 60_000_000
_CARDS = 100_000


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    pairs: int
    live_keys: int
    dedup_rows: int
    dedup_epochs: int
    sliding_rows: int
    skew_rows: int
    skew_epochs: int
    players: int
    rates: tuple[int, ...]
    seconds: float


FULL = Size(2, 10_000_000, 500_000, 8, 400_000, 800_000, 8, 10_000_000, (300_000, 400_000, 500_000, 600_000, 700_000), 300)
QUICK = Size(1, 1_000_000, 200_000, 5, 250_000, 400_000, 6, 500_000, (100_000,), 6)


def once(payments: Stream) -> Stream:
    return payments.dedup("card", ttl="1 hour")


def sliding(payments: Stream) -> Stream:
    return payments.window(hr.sliding("10 minutes"), by="card").agg(n="count(*)", total="sum(amount)")


def sprees(payments: Stream) -> Stream:
    """Three or more payments over $500 from at least two countries in five minutes."""
    return payments.with_columns(country="cast(amount * 4 as bigint) % 5").match(
        by="card", pattern="A{3,}", define={"A": "amount > 500"}, where="count(distinct A.country) >= 2", within="5 minutes",
        measures={"n": "count(A.*)", "total": "sum(A.amount)", "first_at": "first(A.at)"},
    )  # fmt: skip


class Operators(Comparison[Size]):
    """Each measure of a step by key."""

    def dedup(self, name: str) -> Measure:
        """Half of the records of an epoch repeat one of very many live keys, the others are new."""
        size, measure = self.size, Measure(name, "rows/s")
        append(self.log, "ids", _ids(size))
        skip = size.live_keys // size.dedup_rows + 1
        found = []

        def ours() -> None:
            found.append(self.ours.facts("ids", once, size.dedup_rows, "1 hour"))
            measure.ours.append(found[-1].rate(skip))

        def peer() -> None:
            found.append(self.peer.first_of_each("ids", size.dedup_rows, "1 hour"))
            measure.peer.append(found[-1].rate(skip))

        interleave(size.pairs, ours, peer)
        results = [run.result.sort("card") for run in found]
        same = all(one.equals(results[0]) for one in results) and results[0].get_column("card").is_unique().all()
        self._claim(same, f"{name}: {results[0].height:,} records went on, the same on both sides")
        self.log.delete_topic("ids")
        return self._shown(measure)

    def sliding(self, name: str) -> float:
        """The sum of the last ten minutes for each of very many events; the state is full when the last epochs are timed."""
        rows = self.size.sliding_rows
        append(self.log, "even", _payments(rows * 15, MINUTE // rows, 0.0))
        run = self.ours.facts("even", sliding, rows)
        self._right_sums(name, run)
        self.log.delete_topic("even")
        return self._rate(name, run, 11)

    def pattern(self, name: str) -> float:
        """The three-payments pattern over very many cards; half of the payments are over $500. The state is full when it is timed."""
        rows = self.size.sliding_rows // 2
        append(self.log, "sprees", _payments(rows * 16, MINUTE // 2 // rows, 0.0))
        run = self.ours.facts("sprees", sprees, rows)
        checked = pl.col("card").str.ends_with("77")
        sent = pl.from_arrow(self.log.read("sprees"))
        assert isinstance(sent, pl.DataFrame)
        # The watermark is the minimum over partitions.
        last = sent.group_by("_partition").agg(pl.col("at").max())["at"].min()
        assert isinstance(last, datetime)
        wanted = _sprees(sent.filter(checked), last - timedelta(seconds=10))
        found = run.result.filter(checked).select("card", "first_at", "n", "total").sort("card", "first_at").rows()
        self._claim(wanted == found and bool(found), f"{name}: {run.result.height:,} matches, {len(found):,} of them checked one by one")
        self.log.delete_topic("sprees")
        return self._rate(name, run, 12)

    def skew(self, name: str, declare: Any, *, facts: bool = False) -> Measure:
        """One card with nine tenths of the records against even cards."""
        size, measure = self.size, Measure(name, "rows/s")
        for topic, share in (("uniform", 0.0), ("skewed", 0.9)):
            append(self.log, topic, _payments(size.skew_rows * size.skew_epochs, MINUTE // size.skew_rows, share))
        run = self.ours.facts if facts else self.ours.run
        found = list[int]()

        def rate(topic: str) -> float:
            done = run(topic, declare, size.skew_rows)
            found.append(done.result.height)
            return done.rate(2)

        rate("uniform")  # the first run of a kind is slower than all others
        interleave(size.pairs, lambda: measure.ours.append(rate("skewed")), lambda: measure.peer.append(rate("uniform")))
        self._claim(all(found), f"{name}: there are results")
        for topic in ("uniform", "skewed"):
            self.log.delete_topic(topic)
        return self._shown(measure)

    def leaderboard(self, name: str) -> float:
        """The highest rate at which the board shows nearly every record within two seconds: from the middle one on, up or down."""
        rates, place, seen = self.size.rates, len(self.size.rates) // 2, dict[int, Held]()
        while 0 <= place < len(rates) and rates[place] not in seen:
            one = seen[rates[place]] = held(self.ours, self.size.players, rates[place], self.size.seconds)
            print(f"{name}: {one}", flush=True)
            place += 1 if one.in_time else -1
        self.figures[name] = [asdict(one) for one in seen.values()]
        return max((rate for rate, one in seen.items() if one.in_time), default=0)

    def distinct(self) -> None:
        """Exact distinct counts of a stream, which Spark refuses."""
        append(self.log, "cards", _payments(200_000, 1_000, 0.5))
        result = self.ours.run("cards", _distinct, 100_000).result
        expected = _table(self.log, "cards").group_by(pl.col("at").dt.truncate("1m").alias("window_start")).agg(pl.col("card").n_unique())
        both = result.join(expected, on="window_start")
        self._claim(both.height == result.height > 0 and (both["n"] == both["card"]).all(), f"exact distinct: {result.height} windows")
        self._claim(self.peer.refuses_exact_distinct("cards"), "exact distinct: Spark refuses it over a stream")

    def errors(self) -> dict[str, dict[str, float]]:
        """The errors of sketches over many windows, against what their documentation states."""
        records, seen = _sketched()
        exact = records.group_by("window_start").agg(
            pl.col("card").n_unique().alias("cards"), pl.col("amount").sort().alias("sorted"), pl.len().alias("count")
        )
        both = seen.join(exact, on="window_start")
        relative = (both["nearly"] / both["cards"] - 1).to_numpy()
        ranks = [
            abs(np.searchsorted(row["sorted"], row["median"], side="right") / row["count"] - 0.5)
            if row["median"] not in (row["sorted"][row["count"] // 2], row["sorted"][row["count"] // 2 - 1]) else 0.0
            for row in both.to_dicts()
        ]  # fmt: skip
        self._claim(both.height == seen.height > 0, f"sketches: {both.height} windows compared")
        return {
            "approx_count_distinct, standard error seen": {"got": round(float(np.sqrt(np.mean(relative**2))), 4), "at_most": 0.05},
            "approx_percentile, largest error of a rank": {"got": round(float(max(ranks)), 6), "at_most": 0.0001},
        }

    def _rate(self, name: str, run: Run, skip: int) -> float:
        rate = run.rate(skip)
        print(f"{name:<52} {rate:>14,.0f} rows/s   {run.shares(skip)}", flush=True)
        self.figures[name] = {"rows_per_second": round(rate), "phases": run.shares(skip)}
        return rate

    def _right_sums(self, name: str, run: Run) -> None:
        """The results of some cards are those of polars over the same records."""
        few = [str(card) for card in range(0, _CARDS, _CARDS // 50)]
        records = _table(self.log, "even").filter(pl.col("card").is_in(few)).sort("card", "at")
        rolled = records.rolling("at", period="10m", closed="both", group_by="card").agg(
            pl.len().alias("n"), pl.col("amount").sum().alias("total")
        )
        expected = rolled.unique(["card", "at"], keep="last")
        got = run.result.filter(pl.col("card").is_in(few))
        both = got.join(expected, left_on=["card", "window_end"], right_on=["card", "at"], suffix="_wanted")
        right = (both["n"] == both["n_wanted"]).all() and (both["total"] == both["total_wanted"]).all()
        self._claim(bool(right) and both.height == got.height > 0, f"{name}: {both.height:,} sums are right")


def _distinct(payments: Stream) -> Stream:
    return payments.window(hr.tumbling("1 minute")).agg(n="count(distinct card)")


def _ids(size: Size) -> Iterator[pa.Table]:
    """Each key once, then epochs of which half repeat a record that was there, to the last digit."""
    random, half = np.random.default_rng(5), size.dedup_rows // 2
    for first in range(0, size.live_keys, 500_000):
        yield _known(np.arange(first, min(size.live_keys, first + 500_000)))
    for number in range(size.dedup_epochs):
        fresh = size.live_keys + number * half + np.arange(half)
        yield _known(random.permutation(np.concatenate([fresh, random.integers(0, size.live_keys, half)])))


def _known(ids: np.ndarray) -> pa.Table:
    """The record of an id: the same whenever it is sent."""
    return payments(ids, ids % 1_000, START + ids % 1_000_000)


def _payments(rows: int, spacing: int, hot: float) -> Iterator[pa.Table]:
    """Payments of even cards, of which one has a share of its own; amounts are quarters, so that their sums are exact."""
    random = np.random.default_rng(9)
    for first in range(0, rows, 200_000):
        count = min(200_000, rows - first)
        cards = np.where(random.random(count) < hot, 7, random.integers(0, _CARDS, count))
        yield payments(cards, random.integers(1, 4_000, count), START + (first + np.arange(count)) * spacing)


def _sprees(payments: pl.DataFrame, watermark: datetime) -> list[tuple[Any, ...]]:
    """The matches of `sprees` by plain Python: from each payment on the longest run that fits, if it has two countries.

    The input has not ended: a run that payments behind the watermark may still prolong is not certain, nor is what follows it.
    """
    found = []
    for (card,), rows in payments.filter(pl.col("at") < watermark).sort("at").group_by("card", maintain_order=True):
        amounts, times, start = rows["amount"].to_list(), rows["at"].to_list(), 0
        while start < len(amounts):
            end = start
            while end < len(amounts) and amounts[end] > 500 and times[end] - times[start] <= timedelta(minutes=5):
                end += 1
            if end > start and end == len(amounts) and times[start] + timedelta(minutes=5) >= watermark:
                break
            if end - start >= 3 and len({int(amount * 4) % 5 for amount in amounts[start:end]}) >= 2:
                found.append((card, times[start], end - start, sum(amounts[start:end])))
                start = end
            else:
                start += 1
    return sorted(found)


def _table(log: Log, topic: str) -> pl.DataFrame:
    found = pl.from_arrow(log.read(topic, columns=["card", "amount", "at"]))
    assert isinstance(found, pl.DataFrame)
    return found


def _sketched() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Many windows of different sizes, and what the sketches make of them; no Spark is needed to tell."""
    app = hr.App("sketches", home=tempfile.mkdtemp())
    stream = app.stream("p", schema=COLUMNS, key="card", time="at", watermark=hr.bounded("10 seconds"))
    windows = stream.window(hr.tumbling("1 minute"))
    app.view("seen", windows.agg(nearly="approx_count_distinct(card)", median="approx_percentile(amount, 0.5)"))
    random = np.random.default_rng(2)
    tables = []
    with hr.TestDriver(app) as driver:
        for minute in range(60):
            count = int(random.integers(1_000, 20_000))
            at = START + minute * MINUTE + np.sort(random.integers(0, MINUTE, count))
            tables.append(payments(random.integers(0, 50_000, count), random.integers(1, 400_000, count), at))
            driver.send("p", tables[-1])
        driver.end()
        seen = pl.DataFrame(driver.rows("seen"))
    records = pl.from_arrow(pa.concat_tables(tables))
    assert isinstance(records, pl.DataFrame)
    return records.with_columns(pl.col("at").dt.truncate("1m").alias("window_start")), seen


def measured(comparison: Operators, _: Path) -> Targets:
    """Every figure that has a target."""
    size = comparison.size
    errors = comparison.errors()
    comparison.distinct()
    dedup = comparison.dedup(f"dedup over {size.live_keys:,} live keys, against dropDuplicatesWithinWatermark")
    sums = comparison.sliding("sliding 10-minute sums for 100,000 keys, rows/s")
    pattern = comparison.pattern("three payments from two countries, over 100,000 cards, events/s")
    skew = comparison.skew("one key with 90 % of the rows against uniform, windowed sums", tumbling)
    slid = comparison.skew("one key with 90 % of the rows against uniform, sliding sums", sliding, facts=True)
    best = comparison.leaderboard(f"leaderboard of {size.players:,} players, p99 under 2 s for {size.seconds:g} s, events/s")
    return {
        dedup.name: at_least(dedup, 2), "sliding 10-minute sums for 100,000 keys, rows/s": {"got": round(sums), "at_least": 300_000},
        "three payments from two countries, over 100,000 cards, events/s": {"got": round(pattern), "at_least": 200_000},
        skew.name: at_least(skew, 0.7), slid.name: at_least(slid, 0.7),
        f"leaderboard of {size.players:,} players, highest rate tried with p99 under 2 s": {"got": best, "at_least": 500_000},
        **errors,
    }  # fmt: skip


if __name__ == "__main__":
    perform("operators", Operators, QUICK if options(__doc__ or "").quick else FULL, measured)
