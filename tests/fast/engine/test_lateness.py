"""The lateness that the planner of an epoch learns from a topic of the log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headrace.connectors.log.input import LogInput
from headrace.engine.planning import observed_lateness as lateness
from headrace.engine.planning.observed_lateness import Times
from headrace.log import Log
from headrace.operators.event_time.lateness_histogram import Lateness
from headrace.operators.event_time.watermark import StreamTime
from headrace.plan.source_time import event_time

SECOND = 1_000_000
AT = event_time("at", "readings", pa.schema([("at", pa.timestamp("us", "UTC"))]), None)


@pytest.fixture
def topic(tmp_path: Path) -> LogInput:
    """One partition with 300 records in batches of 100, some of them late, one without a time and one from the far future."""
    times = 60_000 * SECOND + np.arange(300) * SECOND - np.random.default_rng(5).integers(0, 30, 300) ** 2 * SECOND // 30
    moments: list[int | None] = times.tolist()
    moments[40], moments[150] = None, 10**15
    with Log(tmp_path / "log") as log:
        log.create_topic("readings", schema="at timestamp", time="at", config={"message.timestamp.after.max.ms": -1})
        for batch in range(3):
            column = pa.array(moments[batch * 100 : batch * 100 + 100], pa.timestamp("us", "UTC"))
            log.append_epoch("readings", pa.table({"at": column}), writer="w", epoch=batch + 1)
    return LogInput(tmp_path / "log", "readings", ("at",), "at")


def expected(topic: LogInput, first: int, last: int) -> Lateness:
    times = np.concatenate([batch.column("at").cast(pa.int64()).drop_null().to_numpy() for batch in topic.read(0, first, last)])
    known = times[times < 10**15]
    return Lateness.of(known)


def test_epochs_teach_together_what_the_whole_topic_does(topic: LogInput) -> None:
    limit, progress, total = 10**14, StreamTime(), Lateness()
    for first, last in ((0, 77), (77, 150), (150, 151), (151, 300)):
        total = total.plus(Times(topic, AT, limit).lateness_ahead({0: first}, {0: last}, progress).get(0, Lateness()))
        progress = progress.observe(topic.ahead({0: first}, {0: last}, None, limit).latest, 0)
    assert total == expected(topic, 0, 300)
    assert total.total == 298
    assert Times(topic, AT, limit).lateness_ahead({0: 300}, {0: 300}, progress) == {}


def test_of_a_long_past_the_end_is_looked_at_and_judged_by_what_was_before_it(topic: LogInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lateness, "NEWEST", 60)
    found = Times(topic, AT, 10**14).lateness_ahead({}, {0: 300}, StreamTime())[0]
    high = topic.ahead({0: 0}, {0: 240}, None, 10**14).latest[0]
    (times,) = (batch.column("at").cast(pa.int64()).to_numpy() for batch in topic.read(0, 240, 300))
    assert found == Lateness.of(times, high)
