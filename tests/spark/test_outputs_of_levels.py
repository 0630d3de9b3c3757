"""Outputs that are written at an earlier level than the last one, and by all tasks: each record once, and in its order."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.core.settings import Settings
from headrace.engine.program.compiler import compiled
from headrace.engine.program.output_stages import output_stages
from headrace.jobs.directory import JobDirectory
from headrace.spark.packet_files import EXCHANGE, PacketFiles

pytestmark = pytest.mark.usefixtures("spark")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
USERS, RECORDS = 17, 400


def shop(home: Path, quick_rows: int) -> hr.App:
    """Facts of the stream, a table of the first level, and a second level that kills its own worker."""
    app, died = hr.App("shop", settings=Settings(home=home, master="local[2]", quick_rows=quick_rows)), home / "died"
    columns = "user string, n int, at timestamp"
    app.log.create_topic("clicks", partitions=4, schema=columns, key="user", time="at")
    clicks = app.stream("clicks", columns, key="user", time="at", watermark=hr.bounded("0s", idle="1 minute"))

    def on_event(event: Any, state: Any) -> Any:
        # In an epoch amid the others, when the first level has written its part; of two tasks one dies.
        if event.seen > 12 and not died.exists():
            with suppress(FileExistsError):
                died.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        yield {"user": event.user, "seen": event.seen}

    counts = clicks.group("user", ttl=None).agg(seen="count(*)")
    app.sink(clicks.where("n >= 0"), hr.log("facts"), name="facts")
    app.view("counts", counts)
    later = counts.to_stream().process(on_event, by="user", state="n int", returns="user string, seen bigint", ttl=None)
    app.view("later", later, key=["user", "seen"])
    return app


@pytest.mark.parametrize(
    ("quick_rows", "least"), [(0, 0), (0, 1 << 20), (RECORDS, 0)], ids=["several tasks, by files", "several tasks", "one task"]
)
def test_a_worker_that_dies_behind_a_level_lets_it_write_nothing_twice(
    tmp_path: Path, quick_rows: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.spark.query.PacketFiles", partial(PacketFiles, least=least))
    app = shop(tmp_path, quick_rows)
    assert output_stages(compiled(app.plan(), 4)) == {"facts": 1, "counts": 1, "later": 3}
    records = [(f"u{n * n % USERS}", n) for n in range(RECORDS)]
    with app.log.producer(acks="all") as producer:
        for user, n in records:
            producer.send("clicks", {"user": user, "n": n, "at": NOON + timedelta(seconds=n)})
    report = app.run(until="end", rows_per_epoch=60)
    assert report.restarts == 1
    facts = app.log.read("facts", columns=["user", "n", "_partition"]).to_pylist()
    assert sorted(row["n"] for row in facts) == list(range(RECORDS))
    assert len({row["_partition"] for row in facts}) > 1
    for user in {user for user, _ in records}:
        mine = [row["n"] for row in facts if row["user"] == user]
        assert all(before < after for before, after in pairwise(mine))
    assert {row["user"]: row["seen"] for row in app.read("counts").to_pylist()} == Counter(user for user, _ in records)
    assert not list((JobDirectory(tmp_path, "shop").checkpoint / EXCHANGE).iterdir())
    counted = {row["step"]: row for row in report.accounting}
    assert counted["facts"]["in"] == counted["clicks"]["in"] == RECORDS
