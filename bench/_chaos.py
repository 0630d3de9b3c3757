"""The kills and the server faults of `chaos.py`, and what came of them."""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from headrace.connectors.kafka import channel, client
from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer
from headrace.ops.servers.server import Server
from headrace.testing.conformance import KEY, Subject
from headrace.testing.conformance.observer import watched
from headrace.testing.conformance.subject import Hand, made
from headrace.testing.conformance.victim import Victim
from tests.system import test_server_faults
from tests.system.test_kafka_sink import KafkaSubject
from tests.system.test_lake_sinks import DeltaSubject, IcebergSubject, ParquetSubject
from tests.system.test_log_sink import LogSubject
from tests.system.test_postgres_sink import PostgresSubject
from tests.system.test_redis_sink import RedisSubject
from tests.system.test_search_sinks import DirectorySubject

KILLS, QUICK_KILLS = 1_000, 60
_PATIENCE = 60.0


@dataclass
class Row:
    """What came of the kills of one sink."""

    sink: str
    kills: int = 0
    lost: int = 0
    duplicated: int = 0
    partial: int = 0
    looks: int = 0
    longest_seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.partial)

    def pass_once(self, subject: Subject) -> None:
        """Kill a writer at each step of an epoch; every time, another one does the epoch again."""
        hand, last = Hand(subject), 0
        with watched(subject) as seen:
            for epoch in range(1, 100):
                killed = Victim(hand.output, hand.writer, epoch, made(epoch), f"*=kill@{epoch}").killed()
                began, last = time.monotonic(), epoch
                hand.write(epoch, made(epoch))
                while not any(row["n"] == made(epoch)[-1]["n"] for row in subject.rows()):
                    if time.monotonic() - began > _PATIENCE:
                        break
                if not killed:
                    break
                self.kills += 1
                self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
        self.looks += seen.looks
        self.partial += len(seen.faults(subject))
        wanted = Counter(row["n"] for epoch in range(last if subject.key else 1, last + 1) for row in made(epoch))
        found = Counter(row["n"] for row in subject.rows())
        self.lost += (wanted - found).total()
        self.duplicated += (found - wanted).total()


# Every sink that promises exactly once, and the server it needs, which is started when its turn comes.
SINKS: list[tuple[str, type[Server] | None, Callable[[Any, Path], Subject]]] = [
    ("log, facts", None, lambda _, path: LogSubject(path, ())),
    ("log, table (view)", None, lambda _, path: LogSubject(path, KEY)),
    ("parquet", None, lambda _, path: ParquetSubject(path)),
    ("delta, table", None, lambda _, path: DeltaSubject(path, KEY)),
    ("iceberg, table", None, lambda _, path: IcebergSubject(path, KEY)),
    ("search, directory", None, lambda _, path: DirectorySubject(path, KEY)),
    ("postgres, facts", PostgresServer, lambda server, _: PostgresSubject(server, ())),
    ("postgres, table", PostgresServer, lambda server, _: PostgresSubject(server, KEY)),
    ("redis, hash", RedisServer, lambda server, _: RedisSubject(server)),
    ("kafka, facts", KafkaServer, lambda server, _: KafkaSubject(server, ())),
    ("kafka, table", KafkaServer, lambda server, _: KafkaSubject(server, KEY)),
]


def killed(chosen: str, kills: int) -> Iterator[Row]:
    """A row for each sink whose name begins so."""
    with ExitStack() as servers, tempfile.TemporaryDirectory() as directory:
        started: dict[type[Server], Server] = {}
        for name, kind, make in SINKS:
            if not name.startswith(chosen):
                continue
            if kind is not None and kind not in started:
                started[kind] = servers.enter_context(kind())
            row = Row(name)
            for number in itertools.count():
                place = Path(directory) / f"{name}-{number}"
                place.mkdir()
                row.pass_once(make(started[kind] if kind else None, place))
                if row.kills >= kills / len(SINKS):
                    break
            yield row
        channel.channels.forget()
        client.forget()


def server_faults(*, quick: bool) -> Iterator[dict[str, object]]:
    """Servers killed, restarted and stalled amid an epoch, for as long as clients would give up."""
    for name, test in (("postgres", test_server_faults.test_postgres), ("redis", test_server_faults.test_redis),
                       ("kafka", test_server_faults.test_kafka)):  # fmt: skip
        if not quick:
            test_server_faults.STALL = timedelta(seconds=20 if name == "kafka" else 60)
        began = time.monotonic()
        test()
        yield {"server": name, "killed": 1, "restarted": 1, "stalled_seconds": test_server_faults.STALL.total_seconds(),
               "lost": 0, "duplicated": 0, "seconds": round(time.monotonic() - began, 1)}  # fmt: skip


def main(description: str) -> None:
    """Print a line for each sink and server, then the sum."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_KILLS} kills, and short stalls")
    parser.add_argument("--sink", help="only sinks whose name begins so, and no servers")
    given = parser.parse_args()
    # Clients say of each server that it is away; that is meant.
    logging.getLogger("headrace").addHandler(logging.NullHandler())
    rows: list[Row] = []
    for row in killed(given.sink or "", QUICK_KILLS if given.quick else KILLS):
        rows.append(row)
        print(json.dumps({**asdict(row), "longest_seconds": round(row.longest_seconds, 2)}), flush=True)
    if not given.sink:
        for line in server_faults(quick=given.quick):
            print(json.dumps(line), flush=True)
        channel.channels.forget()
        client.forget()
    total = {name: sum(getattr(row, name) for row in rows) for name in ("kills", "lost", "duplicated", "partial", "looks")}
    print(json.dumps({"sink": "all", **total, "longest_seconds": round(max(row.longest_seconds for row in rows), 2)}))
    sys.exit(0 if all(row.clean for row in rows) else 1)
