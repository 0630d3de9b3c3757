"""A topic that is closed, or removed from disk, keeps no file open."""

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest

import headrace as hr
from headrace.connectors.log.input import LogInput
from headrace.testing.driver import TestDriver
from tests.support.descriptors import open_files


def log(home: Path) -> None:
    with hr.Log(home) as log:
        log.create_topic("t", schema="n int", partitions=3)
        with log.producer() as producer:
            for number in range(9):
                producer.send("t", {"n": number})
        with log.consumer("t", group="g") as consumer:
            assert consumer.poll()
            consumer.commit()


def abandoned_log(home: Path) -> None:
    log = hr.Log(home)
    log.create_topic("t", schema="n int")
    with log.producer() as producer:
        producer.send("t", {"n": 1})


def driver(home: Path) -> None:
    app = hr.App("clicks", home=home)
    app.view("per_n", app.stream("clicks", schema="n int").group("n", ttl=None).agg(clicks="count(*)"))
    with TestDriver(app) as driver:
        driver.send("clicks", [{"n": 1}])
        driver.restart()
        assert driver.rows("per_n")


def job_input(home: Path) -> None:
    """The log that a process of a job keeps over its epochs."""
    log(home)
    topic = LogInput(home, "t", ("n",), None)
    assert sum(batch.num_rows for partition, end in topic.end().items() for batch in topic.read(partition, 0, end)) == 9


@pytest.mark.parametrize("use", [log, abandoned_log, driver, job_input], ids=lambda use: use.__name__)
def test_logs_that_are_made_and_removed_leave_no_files_open(use: Callable[[Path], None], tmp_path: Path) -> None:
    def times(many: int) -> int:
        for number in range(many):
            use(tmp_path / f"{number}")
            rmtree(tmp_path / f"{number}", ignore_errors=True)
        return open_files()

    # What the first use loads stays.
    few = times(3)
    assert times(20) == few
