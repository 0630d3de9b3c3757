"""kill -9 and errors at the calls that really reach the kernel, put there by strace: what was acknowledged stays, and the log goes on."""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.compacting import Compactable
from tests.support.crashes import appends, check, check_readers, group_commit, prepare, readers, transactions, unlucky
from tests.support.tracing import CALLS, Traced, needs_strace

pytestmark = needs_strace
MEMORY = Path("/dev/shm")


@pytest.fixture
def place() -> Iterator[Path]:
    """In memory if there is a place: a killed process leaves its pages, so no disk is needed."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as directory:
        yield Path(directory)


def every_call(original: Path, path: Path, work, check, injection: str) -> dict[str, int]:
    """Inject at the first call of each kind, on a fresh copy at the second, and so on until there are no more; how many there were."""
    counts = {}
    for call in CALLS:
        for number in count(1):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(original, path)
            child = Traced(path, work, call, f"{injection}:when={number}")
            killed = child.end()
            check(path, child.steps)
            if not killed:
                counts[call] = number - 1
                break
    return counts


@pytest.mark.parametrize(
    ("work", "checked"),
    [(appends, check), (transactions, check), (group_commit, check), (readers, check_readers)],
    ids=["appends", "transactions", "group commit", "commits of a group"],
)
def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged(place, work, checked):
    prepare(place / "original")
    counts = every_call(place / "original", place / "log", work, checked, "signal=KILL")
    assert counts["write"] > 1
    assert counts["sync"] > 0
    if work is appends:
        assert min(counts["rename"], counts["truncate"], counts["directory sync"]) > 1


def test_a_kill_at_any_call_of_a_compaction_loses_and_repeats_nothing(place):
    original = Compactable(place / "original")
    counts = every_call(
        original.path, place / "log", lambda log, tell: original.compact(log.path), lambda path, steps: original.check(path), "signal=KILL"
    )
    assert original.outcomes == {True, False}
    assert min(counts[call] for call in ("write", "sync", "directory sync", "rename", "remove")) > 0


@pytest.mark.parametrize("call", ["sync", "directory sync"])
def test_an_append_whose_sync_fails_is_not_acknowledged_and_one_sent_again_is_stored_once(place, call):
    prepare(place / "original")
    refused = []
    for number in range(1, 9):
        path = place / "log"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(place / "original", path)
        child = Traced(path, unlucky, call, f"error=EIO:when={number}")
        assert not child.end()
        check(path, child.steps)
        refused.append(sum(step[1] == "sent" for step in child.steps) - child.stored)
    # Some errors met an append that is not sent again, others one that is, or the closing of a segment.
    assert set(refused) == {0, 1}
