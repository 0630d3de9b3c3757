"""`headrace lateness`: the distribution, what bounds would lose, and the advice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

APP = """
import headrace as hr

app = hr.App("sensors", home={home!r})
readings = app.stream("readings", schema="at timestamp", time="at", watermark=hr.loss_budget(0.1, max="1 minute"))
app.view("counts", readings.window(hr.tumbling("1 minute")).agg(n="count(*)"))
"""


@pytest.fixture
def readings(log):
    def write(late: list[int], *, partitions: int = 1) -> None:
        """Records per second apart, each behind by a number of seconds, spread over the partitions in turn."""
        log.create_topic("readings", partitions=partitions, schema="at timestamp", time="at")
        times = (np.arange(len(late)) + 10**6 - np.array(late, np.int64)) * 1_000_000
        for partition in range(partitions):
            table = pa.table({"at": pa.array(times[partition::partitions], pa.timestamp("us", "UTC"))})
            log.append_epoch("readings", table, writer="w", epoch=1, partition=partition)

    return write


def told(answer, kind):
    return [row for row in answer.rows if row["kind"] == kind]


def test_it_tells_how_late_each_partition_is_and_what_bounds_would_lose(headrace, readings):
    readings([0, 0, 0, 0, 8, 0, 0, 0, 0, 3] * 30, partitions=2)
    answer = headrace("lateness", "readings")
    assert answer.code == 0
    rows = {row["partition"]: (row["records"], row["behind"], row["p90"], row["p99"], row["max"]) for row in told(answer, "distribution")}
    assert rows == {"0": (150, 30, 6, 6, 6), "1": (150, 30, 1, 1, 1), "all": (300, 60, 6, 6, 6)}
    bounds = {row["bound"]: row["late"] for row in told(answer, "bound")}
    assert bounds == {"0 seconds": 60, "1 second": 30, "5 seconds": 30, "10 seconds": 0}
    assert told(answer, "advice")[0]["advice"] == (
        'watermark=hr.bounded("6 seconds") would have lost nothing, as far as 300 records can tell'
    )


@pytest.mark.parametrize(
    ("late", "advice"),
    [
        ([], "there is no record with an event time yet"),
        ([0] * 2000, "hr.perfect() loses nothing"),
        ([0, 2] * 1000 + [90], 'hr.loss_budget(0.001, max="1 minute 30 seconds") would stay about 1 second behind'),
    ],
)
def test_the_advice_fits_the_stream(headrace, readings, late, advice):
    readings(late)
    assert advice in told(headrace("lateness", "readings"), "advice")[0]["advice"]


def test_an_app_tells_what_its_own_watermark_would_have_lost(headrace, home, readings, tmp_path):
    readings([0, 0, 0, 0, 0, 0, 0, 0, 0, 30] * 10)
    file = tmp_path / "app.py"
    file.write_text(APP.format(home=str(home)))
    declared = told(headrace("lateness", "readings", "--app", file), "bound")[-1]
    assert (declared["bound"], declared["late"]) == ("declared: loss budget 0.1, at most 1 minute", 10)
    assert "such streams: readings" in headrace("lateness", "other", "--app", file).err


def test_a_topic_without_a_time_is_an_error(headrace, log):
    log.create_topic("words", schema="word string")
    answer = headrace("lateness", "words")
    assert (answer.code, "--app app.py" in answer.err) == (1, True)
