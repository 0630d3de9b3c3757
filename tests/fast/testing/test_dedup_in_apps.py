"""Duplicates in a whole app: shards, epochs and restarts change nothing, and every record is accounted for."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds
from tests.support.streams import SCHEMA, START

Sent = list[dict[str, Any]]


def sent(seed: int) -> Sent:
    chance = random.Random(seed)
    moments = [START + timedelta(seconds=second + chance.randrange(-30, 30)) for second in range(0, 600, 4)]
    return [{"key": chance.choice("abcd"), "value": number, "at": at} for number, at in enumerate(moments)]


def outcome(records: Sent, *, epochs: int, shards: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
    app = Declaration("duplicates")
    once = app.stream("records", SCHEMA, key="key", time="at", watermark=bounded("1 hour")).dedup("key", ttl="45 seconds")
    app.view("per_minute", once.window(tumbling("1 minute"), by="key").agg(values="collect_list(value)"))
    size = -(-len(records) // epochs)
    with TestDriver(app, shards=shards) as driver:
        for first in range(0, len(records), size):
            driver.send("records", records[first : first + size])
            driver.restart()
        driver.end()
        (counts,) = [step for step in driver.accounting() if step["step"] == "records.dedup"]
        assert [step["rows"] for step in driver.state()] == [0, 0]
        return driver.rows("per_minute"), {end: counts[end] for end in ("in", "out", "duplicate")}


@pytest.mark.parametrize("seed", seeds(2))
def test_epochs_shards_and_restarts_change_nothing(seed: int) -> None:
    records = sent(seed)
    last: dict[str, list[Any]] = {}
    kept = []
    for record in records:
        others = last.setdefault(record["key"], [])
        if all(abs(record["at"] - other) >= timedelta(seconds=45) for other in others):
            others.append(record["at"])
            kept.append(record["value"])
    for epochs, shards in ((1, 1), (4, 2), (15, 3)):
        rows, counts = outcome(records, epochs=epochs, shards=shards)
        assert sorted(value for row in rows for value in row["values"]) == kept
        assert counts == {"in": len(records), "out": len(kept), "duplicate": len(records) - len(kept)}
