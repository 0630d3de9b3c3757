"""`headrace tail`."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from headrace.cli.places import place
from headrace.core.errors import SettingsError
from tests.support.processes import PATIENCE


@pytest.fixture(autouse=True)
def views(log):
    log.create_topic("views", schema="url string, price int, tags array<string>")
    with log.producer(acks="1") as producer:
        for number in range(30):
            producer.send(
                "views", {"url": f"/{number}", "price": number, "tags": ["x"]}, time=datetime.fromtimestamp(number, UTC), key=f"k{number}"
            )


def numbers(answer) -> list[int]:
    return [row["price"] for row in answer.rows]


def test_the_last_ten_records_are_shown(headrace):
    answer = headrace("tail", "views")
    assert numbers(answer) == list(range(20, 30))
    assert answer.rows[0] == {"url": "/20", "price": 20, "tags": ["x"], "_partition": 0, "_offset": 20, "_time": "1970-01-01T00:00:20Z"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-n", 3], [27, 28, 29]),
        (["-n", 100], list(range(30))),
        (["-n", 0], []),
        (["--from", "beginning", "-l", 2], [0, 1]),
        (["--from", "end"], []),
        (["--from", 28], [28, 29]),
        (["--from", "1970-01-01T00:00:27.5Z"], [28, 29]),
        (["--from", "beginning", "--limit", 0], []),
        (["-w", "price > 26"], [27, 28, 29]),
        (["-w", "price % 10 = 0 and url <> '/10'"], [0, 20]),
        (["-w", "price between 3 and 5", "-n", 2], [4, 5]),
        (["-w", "_offset < 3", "--from", "beginning"], [0, 1, 2]),
        (["-w", "price > 10", "--from", "beginning", "-l", 2], [11, 12]),
        (["-w", "url is null"], []),
        (["-w", "_time >= timestamp'1970-01-01 00:00:28' and array_contains(tags, 'x')"], [28, 29]),
        (["-w", "10 / (price - 29) > -6"], list(range(18, 28))),
        (["-p", 0, "-n", 1], [29]),
    ],
)
def test_places_filters_and_limits(headrace, options, expected):
    answer = headrace("tail", "views", *options)
    assert (answer.code, numbers(answer)) == (0, expected)


def test_columns_are_chosen(headrace):
    assert headrace("tail", "views", "-n", 1, "-c", "_key, url").rows == [{"_key": "k29", "url": "/29"}]
    assert headrace("tail", "views", "-n", 1, "-c", "url", "-w", "price = 4").rows == [{"url": "/4"}]


def test_each_partition_shows_its_last_records(headrace, log):
    log.create_topic("parts", partitions=3, schema="n int")
    for partition in range(3):
        rows = pa.table({"n": pa.array(range(10 * partition, 10 * partition + 5), pa.int32())})
        log.append_epoch("parts", rows, writer="w", epoch=partition, partition=partition)
    assert [row["n"] for row in headrace("tail", "parts", "-n", 2).rows] == [3, 4, 13, 14, 23, 24]
    assert [row["n"] for row in headrace("tail", "parts", "-n", 1, "-p", 1).rows] == [14]
    assert headrace("tail", "parts", "-n", 5, "-p", 7).code == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nothing"], "there is no topic 'nothing'"),
        (["views", "--from", "soon"], "'soon' is not a place in a topic"),
        (["views", "--from", "31"], "has no offset 31"),
        (["views", "--from", "-1"], "has no offset -1"),
        (["views", "-w", "price >"], "where: --where"),
        (["views", "-w", "cost > 1"], "cost"),
        (["views", "-w", "price + 1"], "'price + 1' is not a condition"),
        (["views", "-c", "cost"], "has no column 'cost'"),
    ],
)
def test_what_cannot_be_done_is_told(headrace, options, said):
    answer = headrace("tail", *options)
    assert (answer.code, answer.out) == (1, "")
    assert said in answer.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T10:00:00+02:00", datetime(2026, 1, 1, 8, tzinfo=UTC)),
        ("10 minutes", datetime(2026, 1, 1, tzinfo=UTC) - timedelta(minutes=10)),
        ("1h 30m ago", datetime(2026, 1, 1, tzinfo=UTC) - timedelta(minutes=90)),
        ("0", 0),
    ],
)
def test_a_place_is_read_as_people_write_it(text, expected):
    assert place(text, now=datetime(2026, 1, 1, tzinfo=UTC)) == expected


def test_a_place_that_is_none_is_refused():
    with pytest.raises(SettingsError, match="'yesterday' is not a place"):
        place("yesterday")


def test_following_shows_what_comes_and_ctrl_c_ends_it_quietly(log, home):
    environment = {**os.environ, "HEADRACE_HOME": str(home)}
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "tail", "views", "-f", "-n", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["price"] == 29
        with log.producer() as producer:
            producer.send("views", {"url": "/dear", "price": 99})
        assert json.loads(process.stdout.readline())["url"] == "/dear"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, "", "")


def test_a_limit_ends_following(headrace):
    assert numbers(headrace("tail", "views", "-f", "--from", 28, "-l", 2)) == [28, 29]


def test_a_reader_that_goes_away_ends_it_quietly(home):
    command = f"{sys.executable} -m headrace tail views --from beginning | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env={**os.environ, "HEADRACE_HOME": str(home)}, check=False)
    assert json.loads(done.stdout)["price"] == 0
    assert done.stderr == ""
