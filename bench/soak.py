"""A job over many epochs, at the end of a large topic: an epoch late in its life costs what one soon after its start did.

A dedup with a ttl, a window, sessions and a top write to a view, Parquet files, a Delta table and PostgreSQL, at a steady small rate. The
topic is grown first, and the job catches up with it. The first epochs are left out, until ttl, windows and files of state are in balance.
An epoch's time is Spark's own measure of it. What the sinks hold in the end is compared with the same computed from all records.

usage: python bench/soak.py [--quick]      about 45 minutes; --quick two
"""

from __future__ import annotations

import math
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from _harness import finish, machine, memory_megabytes, options
from _processes import descendants
from _soak import Feed, app_of, beginning, expected, grow, held

import headrace as hr
from headrace.jobs.start.run import JobRun
from headrace.ops.servers.postgres import PostgresServer

# In seconds: between two looks at the job, and between two at its memory and files, which take the driver's time.
_LOOK, _SIZES = 0.05, 1.0


@dataclass(frozen=True)
class Size:
    """How long it lasts."""

    epochs: int
    warming: int
    grown: int
    """Bytes in the topic before the job starts."""
    pause: float
    """Seconds between two batches of records."""
    seconds: float = math.inf
    """After so long it ends with fewer epochs."""


FULL = Size(20_000, 1_000, 5 << 30, 0.05)
QUICK = Size(250, 150, 100 << 20, 0.1, 60.0)


@dataclass(frozen=True)
class Look:
    """A job at one moment."""

    epoch: int
    seconds: float
    megabytes: float
    files: int


def main() -> None:
    quick = options(__doc__ or "").quick
    size, state = QUICK if quick else FULL, machine()
    with tempfile.TemporaryDirectory() as directory, PostgresServer() as server:
        home, tables = Path(directory) / "home", Path(directory) / "tables"
        app = app_of(home, tables, server.dsn)
        begin = beginning(size.epochs)
        grown = grow(app.log, size.grown, begin)
        print(f"the topic has {grown:,} records before the job starts", flush=True)
        app.run(until="caught-up")
        looks, feed = soaked(app, size, Feed(app.log, begin, size.pause))
        report = app.run(until="end")
        with psycopg.connect(server.dsn) as connection:
            correct = same(feed, tables, connection, grown, report)
    first, last = twentieths(looks)
    targets = {
        name: {"got": round(ratio(first, last, name), 3), "at_most": 1.2} for name in ("seconds", "megabytes", "files")
    }  # fmt: skip
    figures = {name: [round(middle(part, name), 3) for part in (first, last)] for name in targets}
    finish("soak", correct=correct, targets=targets, epochs=looks[-1].epoch, looks=len(looks), figures=figures, machine=state, quick=quick)


def soaked(app: hr.App, size: Size, feed: Feed) -> tuple[list[Look], Feed]:
    """Run a job and a feed for this number of epochs; gives what was seen after its warming."""
    run = JobRun(app.plan(), app.settings, app.log)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run.run()
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            failed.append(error)

    thread = threading.Thread(target=work)
    looks: dict[int, Look] = {}
    began, started = None, time.monotonic()
    megabytes, count, sized = 0.0, 0, -math.inf
    feed.start()
    thread.start()
    while thread.is_alive():
        time.sleep(_LOOK)
        seen = run.progress
        if seen is None or seen.epoch_seconds is None or seen.epoch in looks:
            continue
        began = seen.epoch if began is None else began
        if time.monotonic() - sized > _SIZES:
            megabytes, count, sized = memory(), files(app.settings.home), time.monotonic()
        looks[seen.epoch] = Look(seen.epoch, seen.epoch_seconds, megabytes, count)
        if len(looks) % 100 == 0:
            print(f"epoch {seen.epoch:,}: {looks[seen.epoch]}", flush=True)
        if seen.epoch - began >= size.epochs + size.warming or time.monotonic() - started > size.seconds:
            break
    run.stop()
    feed.stop()
    thread.join()
    if failed:
        raise failed[0]
    assert began is not None
    warm = [look for look in looks.values() if look.epoch - began >= size.warming]
    # On a machine that is too busy for the warming there is nothing better.
    return warm or list(looks.values()), feed


def same(feed: Feed, tables: Path, connection: psycopg.Connection[tuple[object, ...]], grown: int, report: hr.Report) -> bool:
    import polars as pl

    sent = pl.concat(feed.sent)
    windows, sessions = expected(sent)
    nobody = pl.col("user") != "nobody"
    rows, lake, visits = (frame.filter(nobody) for frame in held(tables, connection))
    taken = next(row for row in report.accounting if row["step"] == "clicks")
    claims = {
        "PostgreSQL has every window": rows.equals(windows.select(rows.columns)),
        "the Delta table has every window": lake.equals(windows.select(lake.columns)),
        "the Parquet files have every session": visits.equals(sessions),
        "every record was read once": taken["in"] == sent.height + grown,
    }
    for claim, holds in claims.items():
        print(f"{'yes' if holds else 'NO '}  {claim}", flush=True)
    return all(claims.values())


def twentieths(looks: list[Look]) -> tuple[list[Look], list[Look]]:
    """The first twentieth of what was seen, and the last; ten looks at least."""
    count = max(len(looks) // 20, min(10, len(looks)))
    return looks[:count], looks[-count:]


def middle(looks: list[Look], name: str) -> float:
    return statistics.median(getattr(look, name) for look in looks)


def ratio(first: list[Look], last: list[Look], name: str) -> float:
    return middle(last, name) / middle(first, name)


def memory() -> float:
    """What Spark's JVM and its Python workers have in memory."""
    total = 0.0
    for pid in descendants():
        try:
            total += memory_megabytes(pid)
        except (OSError, StopIteration):
            # It ended meanwhile.
            continue
    return total


def files(home: Path) -> int:
    """The files of the log and the job; those of the tables are their own."""
    return sum(path.is_file() for path in home.rglob("*"))


if __name__ == "__main__":
    main()
