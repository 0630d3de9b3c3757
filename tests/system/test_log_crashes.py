"""kill -9 at every operation of the disk: nothing acknowledged is lost, nothing is there twice, and the work goes on."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crashes import Child, appends, check, everything, group_commit, neighbor, prepare, transactions

MEMORY = Path("/dev/shm")


@pytest.fixture
def path(tmp_path) -> Iterator[Path]:
    """Where each attempt puts its copy: in memory if there is a place, because what is asked here does not depend on a disk."""
    if not MEMORY.is_dir():
        yield tmp_path / "log"
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory) / "log"


@pytest.fixture
def original(path) -> Path:
    found = path.with_name("original")
    prepare(found)
    return found


def crash(original: Path, path: Path, work, number: int, *, beside: bool = False) -> bool:
    """Kill `work` at its operation `number`, on a fresh copy; whether it came to that."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(original, path)
    failpoint = f"*=kill@{number}"
    if not beside:
        child = Child("p", path, work, failpoint)
        killed = child.end()
        check(path, child.steps)
        return killed
    with neighbor(path) as other:
        child = Child("p", path, work, failpoint)
        killed = child.end()
    check(path, child.steps + other.steps)
    return killed


@pytest.mark.parametrize("work", [appends, transactions, group_commit])
def test_a_kill_at_any_operation_loses_nothing_that_was_acknowledged(original, path, work):
    number = 1
    while crash(original, path, work, number):
        number += 1
    assert number > 20


@pytest.mark.parametrize("work", [appends, transactions, group_commit])
def test_a_process_next_to_the_killed_one_goes_on(original, path, work):
    number = 1
    while crash(original, path, work, number, beside=True):
        number += 1
    assert number > 20


def test_a_killed_process_may_be_followed_by_one_that_is_killed_in_recovery(original, path):
    """Each of a chain of processes is killed a little later than the one before, on what that one left."""
    shutil.copytree(original, path)
    steps = []
    for number in range(1, 40):
        child = Child(f"p{number}", path, everything, f"*=kill@{5 * number}")
        assert child.end()
        steps += child.steps
    check(path, steps)
