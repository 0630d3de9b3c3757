"""Groups of real processes that join, leave, are killed and paused: nothing is lost, and exactly once is exactly once."""

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from headrace.log import Log
from tests.support import group_worker
from tests.support.group_worker import Worker, open_log, wait_for

PARTITIONS = 6


@pytest.fixture
def path() -> Iterator[Path]:
    # In memory where the system has such a place: a process that is killed loses nothing it wrote, synced or not.
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory) / "log"


@pytest.fixture
def log(path: Path) -> Log:
    log = open_log(path)
    log.create_topic("numbers", partitions=PARTITIONS)
    for name in ("processed", "copies"):
        log.create_topic(name)
    return log


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """Processes that are ended even if the test fails."""
    started: list[Worker] = []
    yield started
    for worker in started:
        if not worker.pipe.closed:
            with suppress(ProcessLookupError):
                worker.signal(signal.SIGKILL)
            worker.end()


class Numbers:
    """Sends numbers, each once, over all partitions."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.sent = 0

    def send(self, count: int) -> None:
        values = [str(number).encode() for number in range(self.sent, self.sent + count)]
        with self._log.producer() as producer:
            producer.send_table("numbers", pa.table({"value": values, "_key": values}))
        self.sent += count

    def counted_in(self, topic: str) -> Counter[int]:
        return Counter(int(value) for value in self._log.read(topic, columns=["value"])["value"].to_pylist())

    def all_in(self, topic: str) -> bool:
        return len(self.counted_in(topic)) == self.sent


def loads(log: Log) -> list[int] | None:
    """How many partitions each member reads, if the group is at rest."""
    if "workers" not in log.group_names():
        return None
    found = log.describe_group("workers")
    return sorted(len(member["partitions"]) for member in found["members"]) if found["state"] != "rebalancing" else None


def committed(log: Log) -> int:
    return sum(found.offset for found in log.offsets.of("workers").values())


def assert_commits_only_grow(log: Log) -> None:
    latest: dict[tuple[str, int], int] = {}
    for row in log.read("__offsets").sort_by("_offset").to_pylist():
        place = row["topic"], row["partition"]
        assert row["offset"] >= latest.get(place, 0)
        latest[place] = row["offset"]


def test_processes_share_the_partitions_as_they_join_and_leave(log, path, workers):
    for count in ([6], [3, 3], [2, 2, 2]):
        workers.append(Worker(group_worker.process_then_commit, path, session_timeout="10 minutes"))
        wait_for(lambda count=count: loads(log) == count)
    numbers = Numbers(log)
    numbers.send(1000)
    wait_for(lambda: numbers.all_in("processed"))
    # The session time-out is far away: who leaves is replaced because it said so.
    workers[1].stop()
    wait_for(lambda: loads(log) == [3, 3])
    numbers.send(1000)
    wait_for(lambda: numbers.all_in("processed"))
    for worker in (workers[0], workers[2]):
        worker.stop()
    assert set(numbers.counted_in("processed").values()) == {1}
    assert committed(log) == 2000
    assert loads(log) == []


def test_a_killed_process_is_replaced_and_all_it_had_not_committed_comes_again(log, path, workers):
    numbers = Numbers(log)
    workers += [Worker(group_worker.process_then_commit, path, assignment="sticky") for _ in range(3)]
    wait_for(lambda: loads(log) == [2, 2, 2])
    numbers.send(2000)
    workers[0].kill()
    numbers.send(1000)
    wait_for(lambda: numbers.all_in("processed"))
    wait_for(lambda: loads(log) == [3, 3])
    wait_for(lambda: committed(log) == 3000)
    assert_commits_only_grow(log)


def test_a_paused_process_is_replaced_cannot_commit_when_it_wakes_and_joins_again(log, path, workers):
    numbers = Numbers(log)
    numbers.send(600)
    paused = Worker(group_worker.read_and_wait, path)
    workers.append(paused)
    assert paused.answer() == 600
    paused.signal(signal.SIGSTOP)
    workers.append(Worker(group_worker.process_then_commit, path))
    wait_for(lambda: numbers.all_in("processed"))
    wait_for(lambda: committed(log) == 600)
    paused.signal(signal.SIGCONT)
    paused.tell("go on")
    assert paused.answer() == "fenced"
    assert committed(log) == 600
    wait_for(lambda: loads(log) == [3, 3])
    for worker in workers:
        worker.stop()
    assert set(numbers.counted_in("processed").values()) == {1}


class Turmoil:
    """Seeded joins, leaves, kills and pauses of processes that do the same work, while numbers arrive."""

    def __init__(self, seed: int, work: group_worker.Callable[..., None], path: Path, workers: list[Worker]) -> None:
        self._random = random.Random(seed)
        self._work, self._path, self._started = work, path, workers
        self._live: list[Worker] = []

    def join(self) -> None:
        named = {"name": f"copier-{len(self._started)}"} if self._work is group_worker.copy_exactly_once else {}
        self._live.append(Worker(self._work, self._path, assignment="sticky", **named))
        self._started.append(self._live[-1])

    def step(self) -> None:
        action = self._random.choice(["join", "stop", "kill", "kill", "pause", "pause"])
        if action == "join" or len(self._live) < 2:
            self.join()
            return
        worker = self._live[self._random.randrange(len(self._live))]
        if action == "pause":
            worker.signal(signal.SIGSTOP)
            # Until the others count it as dead, but not forever: it may hold a lock that they wait for.
            wait_for(lambda: self._missed(worker), within=1.6, or_else=True)
            worker.signal(signal.SIGCONT)
            return
        self._live.remove(worker)
        worker.kill() if action == "kill" else worker.stop()

    def _missed(self, worker: Worker) -> bool:
        members = open_log(self._path).group("workers").roster().members
        return not any(f"-{worker.pid}-" in member for member in members)

    def end(self) -> None:
        for worker in self._live:
            worker.stop()


@pytest.mark.parametrize(
    ("work", "topic", "seed"), [(group_worker.process_then_commit, "processed", 1), (group_worker.copy_exactly_once, "copies", 2)]
)
def test_in_any_turmoil_no_number_is_lost_and_commits_only_grow(log, path, workers, work, topic, seed):
    numbers, turmoil = Numbers(log), Turmoil(seed, work, path, workers)
    turmoil.join()
    for _ in range(20):
        # Before the numbers are there: the workers may be done with them in no time.
        before = committed(log)
        numbers.send(100)
        turmoil.step()
        wait_for(lambda before=before: committed(log) > before)
    wait_for(lambda: numbers.all_in(topic))
    wait_for(lambda: committed(log) == numbers.sent)
    turmoil.end()
    counts = numbers.counted_in(topic)
    assert sorted(counts) == list(range(numbers.sent))
    if work is group_worker.copy_exactly_once:
        assert set(counts.values()) == {1}
    assert_commits_only_grow(log)


@pytest.mark.parametrize("transactional", [True, False])
def test_a_process_killed_at_any_operation_on_the_disk_loses_nothing(log, path, workers, transactional):
    numbers = Numbers(log)
    died_at = 0
    while True:
        numbers.send(3)
        before = committed(log)
        worker = Worker(group_worker.copy_once_and_die, path, dies_at=died_at + 1, transactional=transactional)
        workers.append(worker)
        code = worker.end(0, -signal.SIGKILL)
        assert before <= committed(log) <= numbers.sent
        if code == 0:
            break
        died_at += 1
    # Joining, copying, committing and leaving: each writes, syncs and renames several times.
    assert died_at >= 30
    assert committed(log) == numbers.sent
    # Each process has its own transactional id: what the killed ones left open ends by its time-out.
    wait_for(lambda: numbers.all_in("copies"))
    counts = numbers.counted_in("copies")
    assert sorted(counts) == list(range(numbers.sent))
    if transactional:
        assert set(counts.values()) == {1}
    assert_commits_only_grow(log)
