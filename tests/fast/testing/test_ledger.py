"""Conclusions of the ledger of a simulated run from a read: neither too few, or a promise could be broken unseen, nor too many."""

from datetime import timedelta
from random import Random

import pyarrow as pa
import pytest

from headrace.core.clock import ManualClock
from headrace.log.log import Log
from headrace.testing.actor import HOME
from headrace.testing.disk import Machine
from headrace.testing.ledger import Broken, Certainty, Row, RunLedger, parse
from headrace.testing.simulation import failure_of, prepared


@pytest.fixture
def ledger() -> RunLedger:
    """One append before a power cut, which nobody was promised for longer than the machine ran."""
    ledger = RunLedger()
    entry = ledger.begin("a", "p")
    ledger.attempt(entry, 1)
    ledger.stored(entry, 0, 1, durable=False)
    ledger.power_cut()
    return ledger


def row(offset: int, entry: int) -> Row:
    return Row(offset, entry, attempt=1, index=0, count=1)


def read(ledger: RunLedger, *rows: Row, committed: bool) -> None:
    ledger.check("a", 0, list(rows), [], committed=committed)


def test_an_append_that_is_lost_must_not_come_back(ledger):
    read(ledger, committed=False)
    with pytest.raises(Broken, match="was lost and came back"):
        read(ledger, row(1, 0), committed=False)


def test_an_append_that_was_seen_after_a_power_cut_must_stay(ledger):
    read(ledger, row(1, 0), committed=False)
    assert ledger.entries[0].level is Certainty.DURABLE


def test_a_committed_read_says_nothing_of_what_an_open_transaction_may_hide(ledger):
    read(ledger, committed=True)
    read(ledger, row(1, 0), committed=True)


def test_a_committed_read_tells_what_is_lost_before_its_last_record(ledger):
    later = ledger.begin("a", "p")
    ledger.attempt(later, 1)
    read(ledger, row(5, later.number), committed=True)
    with pytest.raises(Broken, match="was lost and came back"):
        read(ledger, row(1, 0), committed=False)


def test_where_an_append_was_says_nothing_of_where_its_next_attempt_is(ledger):
    later = ledger.begin("a", "q")
    ledger.attempt(later, 1)
    ledger.attempt(ledger.entries[0], 1)
    ledger.power_cut()
    read(ledger, row(5, later.number), committed=True)
    read(ledger, row(5, later.number), row(6, 0), committed=False)


def test_a_record_behind_an_open_transaction_is_served_when_that_has_timed_out():
    """What the log itself does here: the record is held back, not lost, also over a power cut."""
    clock, machine = ManualClock(), Machine(Random(0), prepared().copy())
    log = Log(HOME, disk=machine.process(), clock=clock)
    writer = log.producer(transactional_id="t1", linger=None)
    writer.begin_transaction()
    writer.send("a", b"open").result()
    log.producer(linger=None).send_table("a", pa.table({"value": [b"0:1:0:1:"]}))
    machine.cut_power()
    log = Log(HOME, disk=machine.process(), clock=clock)
    assert log.read("a").num_rows == 0
    clock.advance(timedelta(minutes=2))
    assert [parse(1, value).entry for value in log.read("a")["value"].to_pylist()] == [0]


def test_the_run_that_mistook_a_record_held_back_for_a_lost_one_breaks_no_promise():
    assert failure_of(6237) is None
