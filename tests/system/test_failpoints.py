"""Every failpoint is passed by work that other tests kill at each of its failpoints: none is there for nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.connectors.kafka import client, epoch_producer
from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.log import Log
from headrace.testing.conformance import KEY, Subject
from headrace.testing.conformance.subject import SubjectWriter, made
from headrace.testing.faults import FAILPOINTS, faults
from tests.fast.connectors.http.test_output import HttpSubject, Service
from tests.support.compacting import Compactable
from tests.support.crashes import Teller, everything, prepare
from tests.system.test_job_kills import AREAS
from tests.system.test_kafka_sink import KafkaSubject
from tests.system.test_postgres_sink import PostgresSubject
from tests.system.test_redis_sink import RedisSubject
from tests.system.test_search_sinks import OF_A_NODE, DirectorySubject

Work = Callable[[], None]


def of_the_log(directory: Path, request: pytest.FixtureRequest) -> Work:
    prepare(directory / "log")
    original = Compactable(directory / "compactable")

    def work() -> None:
        # test_log_crashes kills this work at each failpoint, test_compaction_crash the compaction.
        everything(Log(directory / "log", clock=ManualClock()), Teller("p", 1))
        original.compact(original.path)

    return work


def of_an_epoch(subject: Subject) -> Work:
    """What the conformance suite kills at each failpoint."""
    return lambda: SubjectWriter(subject).write(1, made(1)) and None


def of_http(directory: Path, request: pytest.FixtureRequest) -> Work:
    def work() -> None:
        with Service() as service:
            thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            SubjectWriter(HttpSubject(service)).write(1, made(1))
            service.shutdown()
            thread.join()

    return work


def of_kafka(directory: Path, request: pytest.FixtureRequest) -> Work:
    epoch = of_an_epoch(KafkaSubject(request.getfixturevalue("kafka"), KEY))

    def work() -> None:
        epoch()
        epoch_producer.producers.forget()
        client.forget()

    return work


WORK: dict[tuple[str, ...], Callable[[Path, pytest.FixtureRequest], Work]] = {
    ("disk.",): of_the_log,
    ("postgres.",): lambda _, request: of_an_epoch(PostgresSubject(request.getfixturevalue("postgres"), KEY)),
    ("redis.",): lambda _, request: of_an_epoch(RedisSubject(request.getfixturevalue("redis"))),
    ("kafka.",): of_kafka,
    ("stage.", "publish.", "search.commit."): lambda directory, _: of_an_epoch(DirectorySubject(directory, KEY)),
    ("http.",): of_http,
}


def test_every_failpoint_has_work_that_is_killed_there() -> None:
    # tests/spark/test_evolution.py cuts the takeover of a changed app at both of its own, test_crash_images.py the loop of quick epochs.
    beginnings = [*WORK, OF_A_NODE, ("evolution.",), ("loop.",), tuple(f"{area}." for area in AREAS)]
    claimed = {name: sum(name.startswith(beginning) for beginning in beginnings) for name in FAILPOINTS}
    assert claimed == dict.fromkeys(FAILPOINTS, 1)
    assert all(any(name.startswith(begin) for name in FAILPOINTS) for beginning in beginnings for begin in beginning)


@pytest.mark.xdist_group("servers")
@pytest.mark.parametrize("beginning", WORK, ids="".join)
def test_work_passes_every_failpoint_of_its_kind(
    beginning: tuple[str, ...], tmp_path: Path, request: pytest.FixtureRequest, capfd: object
) -> None:
    work = WORK[beginning](tmp_path, request)
    with faults(""):
        work()
        passed = {name for name in failpoints.hits if name != failpoints.ALL}
    assert passed == {name for name in FAILPOINTS if name.startswith(beginning)}
