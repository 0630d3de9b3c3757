"""The kills and the server faults of `chaos.py`, and what came of them."""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[1]))

from headrace.connectors.kafka import client, epoch_producer
from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.opensearch import OpenSearchServer
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer
from headrace.testing.conformance import KEY, Subject
from headrace.testing.conformance.observer import watched
from headrace.testing.conformance.subject import SubjectWriter, made
from headrace.testing.conformance.victim import Victim
from tests.fast.connectors.http.test_output import HttpSubject, Service
from tests.system import test_server_faults
from tests.system.test_kafka_sink import KafkaSubject
from tests.system.test_lake_sinks import DeltaSubject, IcebergSubject, ParquetSubject
from tests.system.test_log_sink import LogSubject
from tests.system.test_postgres_sink import PostgresSubject
from tests.system.test_redis_sink import RankedSubject, RedisSubject
from tests.system.test_search_sinks import DirectorySubject, NodeSubject

KILLS, QUICK_KILLS = 1_000, 60
# How often each step of a sink is killed at, at least, when there is time.
REPETITIONS = 3
_PATIENCE = 60.0
# Within which a killed writer's epoch is there, written by the next one.
_PROGRESS = 30.0
_COLUMNS = {"kills": 6, "steps": 6, "passes": 7, "lost": 5, "twice": 6, "partial": 8, "looks": 8, "longest": 9, "seconds": 8}


@dataclass
class Row:
    """What came of the kills of one sink."""

    sink: str
    kills: int = 0
    steps: int = 0
    """At how many places of an epoch's way a writer was killed."""
    passes: int = 0
    """How often at each of them."""
    lost: int = 0
    duplicated: int = 0
    partial: int = 0
    looks: int = 0
    longest: float = 0.0
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.partial) and self.longest < _PROGRESS

    def pass_once(self, subject: Subject) -> None:
        """Kill a writer at each step of an epoch; every time, another one does the epoch again."""
        began, hand, last = time.monotonic(), SubjectWriter(subject), 0
        with watched(subject) as seen:
            for last in range(1, 100):
                killed = Victim(hand.output, hand.writer, last, made(last), f"*=kill@{last}").killed()
                waited = self._repeated(subject, hand, last)
                if not killed:
                    break
                self.kills += 1
                self.longest = max(self.longest, waited)
        self.steps, self.passes = max(self.steps, last - 1), self.passes + 1
        self.looks += seen.looks
        self.partial += len(seen.faults(subject))
        wanted = Counter(row["n"] for epoch in range(last if subject.key else 1, last + 1) for row in made(epoch))
        found = Counter(row["n"] for row in subject.rows())
        self.lost += (wanted - found).total()
        self.duplicated += (found - wanted).total()
        self.seconds += time.monotonic() - began

    def _repeated(self, subject: Subject, hand: SubjectWriter, epoch: int) -> float:
        """Write an epoch again; how long that took until readers saw it."""
        began = time.monotonic()
        hand.write(epoch, made(epoch))
        while not any(row["n"] == made(epoch)[-1]["n"] for row in subject.rows()):
            if time.monotonic() - began > _PATIENCE:
                break
        return time.monotonic() - began

    def __str__(self) -> str:
        numbers = (self.kills, self.steps, self.passes, self.lost, self.duplicated, self.partial, self.looks)
        return _line(self.sink, *(f"{number:,}" for number in numbers), f"{self.longest:.2f} s", f"{self.seconds:.0f}")

    @classmethod
    def total(cls, rows: Sequence[Row]) -> Row:
        """All rows as one; of what is the most or the least among them, that one."""
        names = ("kills", "steps", "lost", "duplicated", "partial", "looks", "seconds")
        sums = {name: sum(getattr(row, name) for row in rows) for name in names}
        return cls("all", **sums, passes=min(row.passes for row in rows), longest=max(row.longest for row in rows))


class Site:
    """Where sinks lead: directories, and servers that are started when the first sink needs them."""

    def __init__(self, directory: Path, until: ExitStack) -> None:
        self._directory, self._until = directory, until
        self._numbers = itertools.count()
        self._servers: dict[type[AbstractContextManager[Any]], Any] = {}

    @property
    def place(self) -> Path:
        """A directory that nobody has used."""
        place = self._directory / str(next(self._numbers))
        place.mkdir()
        return place

    def server(self, kind: type[AbstractContextManager[Any]]) -> Any:
        if kind not in self._servers:
            self._servers[kind] = self._until.enter_context(kind())
        return self._servers[kind]


class Heeding(Service):
    """The service of the HTTP sink's own tests, at work while its block lasts."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def _http(site: Site) -> Subject:
    service = site.server(Heeding)
    service.taken.clear()
    return HttpSubject(service)


SINKS: dict[str, Callable[[Site], Subject]] = {
    "log, facts": lambda site: LogSubject(site.place, ()),
    "log, table (view)": lambda site: LogSubject(site.place, KEY),
    "parquet": lambda site: ParquetSubject(site.place),
    "delta, facts": lambda site: DeltaSubject(site.place, ()),
    "delta, table": lambda site: DeltaSubject(site.place, KEY),
    "iceberg, facts": lambda site: IcebergSubject(site.place, ()),
    "iceberg, table": lambda site: IcebergSubject(site.place, KEY),
    "search, directory": lambda site: DirectorySubject(site.place, KEY),
    "search, OpenSearch": lambda site: NodeSubject(site.server(OpenSearchServer), KEY),
    "http": _http,
    "postgres, facts": lambda site: PostgresSubject(site.server(PostgresServer), ()),
    "postgres, table": lambda site: PostgresSubject(site.server(PostgresServer), KEY),
    "redis, hash": lambda site: RedisSubject(site.server(RedisServer)),
    "redis, string": lambda site: RedisSubject(site.server(RedisServer), form="string", ttl="1 hour"),
    "redis, sorted set": lambda site: RankedSubject(site.server(RedisServer)),
    "kafka, facts": lambda site: KafkaSubject(site.server(KafkaServer), ()),
    "kafka, table": lambda site: KafkaSubject(site.server(KafkaServer), KEY),
}


def killed(chosen: str, kills: int, repetitions: int) -> Iterator[Row]:
    """A row for each sink whose name begins so. All have the same share of the kills; who needs more for its many steps takes more."""
    names = [name for name in SINKS if name.startswith(chosen)]
    left = kills * len(names) // len(SINKS)
    with ExitStack() as until, tempfile.TemporaryDirectory() as directory:
        site = Site(Path(directory), until)
        for number, name in enumerate(names):
            row = Row(name)
            while row.passes < repetitions or row.kills < left / (len(names) - number):
                row.pass_once(SINKS[name](site))
            left -= row.kills
            yield row
        epoch_producer.producers.forget()
        client.forget()


def server_faults(*, quick: bool) -> Iterator[str]:
    """Servers killed, restarted and stalled amid an epoch, for as long as clients would give up; each is a test that fails by an error."""
    for name, test in (("postgres", test_server_faults.test_postgres), ("redis", test_server_faults.test_redis),
                       ("kafka", test_server_faults.test_kafka)):  # fmt: skip
        if not quick:
            test_server_faults.STALL = timedelta(seconds=20 if name == "kafka" else 60)
        began, stall = time.monotonic(), test_server_faults.STALL.total_seconds()
        test()
        yield f"{name}: killed, restarted and stalled {stall:g} s amid an epoch: lost 0, twice 0, {time.monotonic() - began:.0f} s"


def main(description: str) -> None:
    """Print a line for each sink, their sum, and a line for each server."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_KILLS} kills, and short stalls")
    parser.add_argument("--sink", default="", help="only sinks whose name begins so, and no servers")
    given = parser.parse_args()
    rows: list[Row] = []
    print(_line("sink", *_COLUMNS), flush=True)
    for row in killed(given.sink, *((QUICK_KILLS, 1) if given.quick else (KILLS, REPETITIONS))):
        rows.append(row)
        print(row, flush=True)
    print(Row.total(rows), flush=True)
    if not given.sink:
        for line in server_faults(quick=given.quick):
            print(line, flush=True)
        epoch_producer.producers.forget()
        client.forget()
    sys.exit(0 if all(row.clean for row in rows) else 1)


def _line(sink: str, *cells: str) -> str:
    return f"{sink:<20}" + "".join(f"{cell:>{width + 1}}" for cell, width in zip(cells, _COLUMNS.values(), strict=True))
