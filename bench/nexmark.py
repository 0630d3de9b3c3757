"""Nexmark: all of its queries against DuckDB's answers, and what an event costs Headrace, Spark and Flink in each of them.

Every side answers each query over few events first; only a side whose answer is DuckDB's is measured. Rows per second and core are events
over the CPU time of all processes of a side: that of a run over many events, without that of a run over some, so that what starting costs
does not count. Queries in which an event costs little are measured over five times as many, in epochs five times as large. Headrace reads
topics of its log, Spark and Flink read Parquet files of the same events; all let go of their results. Events are out of order, by less than
the watermark waits.

usage: python bench/nexmark.py [--quick] [--queries q0,q5] [--pairs 3] [--no-flink]

All queries are measured once, by a run over some events and one over many; `--pairs` repeats that, and takes the median. PyFlink is
installed from PyPI the first time. `--quick` checks all answers, and measures two queries against Spark alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from _harness import finish, machine
from _nexmark import files
from _nexmark.answers import Answers, difference
from _nexmark.driven import driven
from _nexmark.events import Events
from _nexmark.flink import Flink, python_with_flink
from _nexmark.headrace_side import Headrace
from _nexmark.queries import QUERIES
from _nexmark.sides import Inputs, Refused, Side
from _nexmark.spark import PlainSpark

from headrace.core.settings import Settings
from headrace.spark.session import session

HERE = Path(__file__).parent
# What passes of event time must be much more than the longest window.
_RATE = 10_000
# Less CPU time is lost in what starting a query takes now and then.
_LEAST = 0.3
_SHARES = {"person": 1, "auction": 3, "bid": 46}


@dataclass(frozen=True)
class Size:
    """How much is measured: the events of each amount, those of an epoch, how often, and which queries."""

    few: int
    some: int
    many: int
    more: int
    epoch: int
    pairs: int
    queries: tuple[str, ...]


FULL = Size(few=10_000, some=200_000, many=1_000_000, more=5_000_000, epoch=200_000, pairs=1, queries=tuple(QUERIES))
QUICK = Size(few=5_000, some=50_000, many=250_000, more=1_250_000, epoch=50_000, pairs=1, queries=("q1", "q5"))


class Nexmark:
    """The sides, what each costs in each query, and whether every answer was right."""

    def __init__(self, sides: Sequence[Side], size: Size, answers: Answers) -> None:
        self._sides, self._size, self._answers = sides, size, answers
        self.correct = True
        self.targets: dict[str, dict[str, float]] = {}
        self.figures: dict[str, Any] = {}

    def compare(self, query: str) -> None:
        """Check every side's answer, then measure those that have the right one."""
        able = [side for side in self._sides if self._right(side, query)]
        rates: dict[str, list[float]] = {side.name: [] for side in able}
        for side in able:
            # A JVM compiles while it runs a query for the first time.
            side.spend(query, "some")
        for _ in range(self._size.pairs):
            for side in reversed(able):
                rates[side.name] += self._rate(side, query)
        median = {name: statistics.median(found) for name, found in rates.items() if found}
        self.figures[query] = {name: {"rows_per_second_and_core": round(rate)} for name, rate in median.items()}
        shown = "   ".join(f"{name} {rate:>12,.0f}" for name, rate in median.items())
        print(f"{query:<4} rows/s and core   {shown}", flush=True)
        for name, rate in median.items():
            if name != "headrace" and "headrace" in median:
                self.targets[f"{query}, rows per second and core, against {name}"] = {
                    "got": _short(median["headrace"] / rate),
                    "at_least": 1,
                }

    def check(self, query: str, found: pl.DataFrame, who: str) -> bool:
        """Whether an answer is DuckDB's; Q12 counts by the wall clock, and only the sum of each bidder is the same everywhere."""
        if query == "q12":
            found = found.group_by("bidder").agg(pl.col("bid_count").sum())
        wrong = difference(found, self._answers.of(query))
        print(f"{'WRONG' if wrong else 'ok   '} {query} {who}: {wrong or f'{found.height:,} rows are as DuckDB has them'}", flush=True)
        return not wrong

    def _right(self, side: Side, query: str) -> bool:
        found = side.answer(query)
        if isinstance(found, Refused):
            print(f"-     {query} {side.name} refuses it: {found.reason}", flush=True)
            self.figures.setdefault("refused", {}).setdefault(side.name, {})[query] = found.reason
            return False
        right = self.check(query, found, side.name)
        # A peer's wrong answer is reported, and does not make ours wrong.
        self.correct = self.correct and (right or side.name != "headrace")
        return right

    def _rate(self, side: Side, query: str) -> list[float]:
        """Rows per second and core. If the CPU time of both runs is too near to tell, ours is at least what is returned, and a peer has
        none."""
        fewer, more = ("many", "more") if QUERIES[query].light else ("some", "many")
        some, many = side.spend(query, fewer).cpu_seconds, side.spend(query, more).cpu_seconds
        near = many - some < _LEAST
        if near:
            told = "at least the rate below" if side.name == "headrace" else "no rate"
            print(f"-     {query} {side.name}: {some:.2f} s for some events and {many:.2f} s for many tell {told}", flush=True)
        share = sum(_SHARES.get(name, 0) for name in QUERIES[query].reads) / sum(_SHARES.values())
        events = getattr(self._size, more) - getattr(self._size, fewer)
        return [] if near and side.name != "headrace" else [events * share / max(many - some, _LEAST)]


def _short(number: float) -> float:
    return float(f"{number:.3g}")


def measured(size: Size, home: Path, options: argparse.Namespace) -> Nexmark:
    """Write the events, start the sides, and go through the queries."""
    cores = os.cpu_count() or 2
    inputs = Inputs(home / "few", home / "some", home / "many", home / "more")
    disorder = _RATE // 2
    events = {amount: Events(getattr(size, amount), rate=_RATE, disorder=disorder) for amount in inputs.all}
    # Few events at the same rate would fit into one window.
    events["few"] = replace(events["few"], rate=500, disorder=500)
    batches = list(events["few"].batches(size.few // 4))
    answers = Answers(batches)
    settings = Settings(home=home, master=f"local[{cores}]", driver_memory="3g")
    spark = session(settings, name="bench", cores=cores, output=home / "spark.log")
    headrace = Headrace(spark, settings, cores, inputs, size.epoch)
    for amount, place in inputs.all.items():
        files.write(events[amount], size.few // 4 if amount == "few" else size.epoch, place)
        headrace.load(amount, events[amount])
    os.sync()  # what is left to be written must not be paid by the first run
    sides: list[Side] = [headrace, PlainSpark(spark, inputs)]
    python = Refused("--quick or --no-flink") if options.quick or options.no_flink else python_with_flink()
    flink = None if isinstance(python, Refused) else Flink(python, inputs, cores, answers)
    if isinstance(python, Refused):
        print(f"-     flink is left out: {python.reason}", flush=True)
    nexmark = Nexmark([*sides, *([flink] if flink else [])], size, answers)
    for query in (query for query in QUERIES if query not in size.queries):
        nexmark.correct = nexmark.check(query, driven(query, events["few"], batches), "headrace, in virtual time") and nexmark.correct
    for query in size.queries:
        nexmark.compare(query)
    if flink:
        flink.close()
    spark.stop()
    return nexmark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: under two minutes")
    parser.add_argument("--queries", default="", help="only these, as q0,q5")
    parser.add_argument("--pairs", type=int, default=0, help="how often each query is measured")
    parser.add_argument("--no-flink", action="store_true", help="leave Flink out")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    if options.queries:
        size = replace(size, queries=tuple(options.queries.split(",")))
    if options.pairs:
        size = replace(size, pairs=options.pairs)
    state = machine()
    print(f"machine: {state}; {size}", flush=True)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        done = measured(size, Path(directory), options)
    more = {"figures": done.figures, "machine": {**state, "load_after": machine()["load"]}}
    finish("nexmark", correct=done.correct, targets=done.targets, **more)


if __name__ == "__main__":
    main()
