"""The log on a machine that crashes at any step, thousands of times; and the proof that such runs find what they are meant to find."""

from __future__ import annotations

from multiprocessing import get_context
from unittest import mock

import pytest

from headrace.log.files import cursor, frame
from headrace.log.files.active import ActiveSegment
from headrace.log.files.durability import Durability
from headrace.log.files.head import Head
from headrace.log.files.partition import Partition
from headrace.log.files.segment import Segment
from headrace.log.files.writers import Writers
from headrace.log.transactions import Transactions
from headrace.testing.disk import SimulatedDisk, SimulatedFile
from headrace.testing.simulation import Simulation, explore, prepared, replay
from tests.support.examples import seeds, soaked

# In parts, so that each stays far below the time that one test may take: 20,000 runs in `make soak`, 1,000 in `make test`.
PARTS = 4
RUNS = soaked(5_000, 500)
FEW = 1_000


@pytest.mark.parametrize("part", range(PARTS))
def test_no_run_breaks_a_promise_of_the_log(part):
    """Each run has crashes of its own; a failure names its seed and the command that repeats it."""
    prepared()
    for seed, failure in explore(seeds(RUNS, part)):
        pytest.fail(f"{failure}\nseed {seed}, to be repeated with:\n{replay(seed)}", pytrace=False)


def test_a_run_goes_the_same_way_each_time():
    with get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        first, second = pool.map(story, [7, 7], chunksize=1)
    assert first == second
    assert len(first) > 10


def story(seed: int) -> list[str]:
    told: list[str] = []
    Simulation(seed, trace=told.append).run()
    return told


def _keep_half_appends(self, proved=0, *, recover=Segment.recover):
    with mock.patch.object(frame, "MORE", 0):
        return recover(self, proved)


def _show_at_once(self, state, file):
    with self._end.locked("append") as found:
        shown = found._replace(visible=found.written, visible_position=found.position)
        self._end.head.store(shown)
    return shown._replace(durable=state.written)


def _without_mark(self, state, *, store=Head.store):
    store(self, state._replace(rolling=0))


# Each is a mistake that a log could have, and what has to be put in place of right code to make it.
MISTAKES = {
    "a sync does nothing": (SimulatedFile, "sync", lambda self: self._process.step("sync")),
    "a directory is never synced": (SimulatedDisk, "sync_directory", lambda self, path: self.step("sync_directory")),
    "an append is acknowledged before it is synced": (Durability, "_finish", _show_at_once),
    "recovery keeps a part of an append": (Segment, "recover", _keep_half_appends),
    "a zero sector passes for an unwritten one": (frame, "blank_sectors", lambda body, position: 0),
    "writers are forgotten": (Writers, "record", lambda self, writer, last: None),
    "writers are forgotten when a segment is closed": (Writers, "pack", lambda self, now: bytes(4)),
    "a process misses that another took an append back": (ActiveSegment, "fits", lambda self, state: self.segment.base == state.segment),
    "offsets that were seen are given again": (Partition, "_reserved", lambda self, state, count: state),
    "after a failed sync the next one is believed": (ActiveSegment, "forget_unsynced", lambda self, state: state._replace(syncing=0)),
    "a closing segment leaves no mark": (Head, "store", _without_mark),
    "every transaction counts as committed": (Transactions, "_known", lambda self, frame: cursor.COMMITTED),
    "readers pass by open transactions": (cursor, "OPEN", "never"),
    "a commit does not wait for its records": (Partition, "sync", lambda self: None),
    "an old writer is not refused": (Transactions, "_refuse_old", lambda self, writer, generation, state: None),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake):
    prepared()
    with mock.patch.object(*MISTAKES[mistake]):
        assert next(explore(range(FEW)), None) is not None, f"{FEW} runs did not find that {mistake}"
