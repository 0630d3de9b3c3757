"""The requirements of every output. Each case takes a subject with an empty target, and skips what the subject cannot do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from headrace.connectors.output import WriterFenced
from headrace.testing.conformance.observer import observed
from headrace.testing.conformance.subject import Row, Subject, SubjectWriter, made, ordered
from headrace.testing.conformance.victim import Victim
from headrace.testing.faults import faults

Case = Callable[[Subject], None]
_MOST_STEPS = 200
_PATIENCE = 30.0


def an_epoch_written_twice_is_there_once(subject: Subject) -> None:
    hand = SubjectWriter(subject)
    assert hand.write(1, made(1))
    assert not hand.write(1, made(1))
    expect(subject, made(1))


def an_epoch_that_is_past_changes_nothing(subject: Subject) -> None:
    hand = SubjectWriter(subject)
    assert hand.write(3, made(3))
    assert hand.write(7, made(7))
    assert not hand.write(3, made(3))
    assert not hand.write(5, made(5))
    expect(subject, made(7) if subject.key else [*made(3), *made(7)])


def the_last_epoch_of_each_task_is_told(subject: Subject) -> None:
    first, second = SubjectWriter(subject), SubjectWriter(subject, task=1)
    assert first.output.last_epoch(first.writer) is None
    second.write(2, made(2))
    first.write(3, made(3))
    first.write(5, made(5))
    assert first.output.last_epoch(first.writer) == 5
    assert second.output.last_epoch(second.writer) in (2, 5), "where tasks commit together, they have one epoch"


def each_task_has_its_own_epochs(subject: Subject) -> None:
    first, second = SubjectWriter(subject), SubjectWriter(subject, task=1)
    others = [{**row, "user": f"v{number}"} for number, row in enumerate(made(1))]
    assert first.stage(1, made(1))
    assert second.write(1, others)
    assert not second.write(1, others)
    expect(subject, ordered([*made(1), *others]))


def the_facts_of_a_key_keep_their_order(subject: Subject) -> None:
    if subject.key:
        return
    hand = SubjectWriter(subject)
    for epoch in (1, 2, 3):
        rows = [{"user": f"u{number % 3}", "n": 100 * epoch + number, "note": ""} for number in range(60)]
        hand.write(epoch, rows)
        hand.write(epoch, rows)
    expect(subject, [{"user": f"u{n % 3}", "n": 100 * epoch + n, "note": ""} for epoch in (1, 2, 3) for n in range(60)])
    for user in ("u0", "u1", "u2"):
        numbers = [row["n"] for row in subject.rows() if row["user"] == user]
        assert numbers == sorted(numbers)


def a_table_holds_the_latest_of_each_key(subject: Subject) -> None:
    if not subject.key:
        return
    hand = SubjectWriter(subject)
    hand.write(1, made(1))
    hand.write(2, made(2)[:2], gone=made(1)[4:])
    expect(subject, [*made(2)[:2], *made(1)[2:4]])
    # What is removed comes back, and removing what does not exist does nothing.
    hand.write(3, made(3)[5:], gone=[*made(2)[:1], {"user": "nobody", "n": 1, "note": "never here"}])
    expect(subject, [*made(2)[1:2], *made(1)[2:4], *made(3)[5:]])


def values_come_through_as_they_are(subject: Subject) -> None:
    odd = ["", " ", "null", "NULL", "\\N", 'a "quoted" word', "one,two;three", "two\nlines\r\n", "tab\t", "ünïcödé 🚀", "\\x41", None]
    rows = [{"user": f"u{number:02}", "n": number - 2**62, "note": note} for number, note in enumerate(odd)]
    SubjectWriter(subject).write(1, rows)
    expect(subject, rows)


def a_writer_killed_at_any_step_has_written_all_or_nothing(subject: Subject) -> None:
    with observed(subject):
        kills = kill_at_every_step(subject)
    assert kills, "the output passes no failpoint"


def kill_at_every_step(subject: Subject) -> int:
    """Kill a writer at each failpoint of an epoch, and let another one repeat its epoch; returns how often that was."""
    hand, before = SubjectWriter(subject), ordered(subject.rows())
    for step in range(1, _MOST_STEPS):
        rows = made(step)
        killed = Victim(hand.output, hand.writer, step, rows, f"*=kill@{step}").killed()
        whole = ordered(rows if subject.key else [*before, *rows])
        if subject.whole:
            expect(subject, before, whole)
        hand.write(step, rows)
        expect(subject, whole)
        before = whole
        if not killed:
            return step - 1
    raise AssertionError(f"more than {_MOST_STEPS} steps")


def a_write_that_fails_at_any_step_can_be_repeated(subject: Subject) -> None:
    hand, before = SubjectWriter(subject), list[dict[str, Any]]()
    for step in range(1, _MOST_STEPS):
        rows = made(step)
        failed = _fails(hand, step, rows)
        whole = ordered(rows if subject.key else [*before, *rows])
        expect(subject, before, whole)
        hand.write(step, rows)
        expect(subject, whole)
        before = whole
        if not failed:
            return


def a_writer_of_an_earlier_run_is_shut_out(subject: Subject) -> None:
    old, new = SubjectWriter(subject, generation=1), SubjectWriter(subject, generation=2)
    assert old.write(1, made(1))
    assert not new.write(1, made(1))
    assert new.write(2, made(2))
    try:
        old.write(3, made(3))
    except WriterFenced:
        pass
    else:
        raise AssertionError("a writer of an earlier run was let in")
    expect(subject, made(2) if subject.key else [*made(1), *made(2)])
    assert new.write(3, made(3))


def a_writer_held_up_before_its_commit_does_no_harm_when_it_wakes(subject: Subject) -> None:
    if subject.stall is None:
        return
    SubjectWriter(subject, generation=1).write(1, made(1))
    old, new = SubjectWriter(subject, generation=1), SubjectWriter(subject, generation=2)
    victim = Victim(old.output, old.writer, 2, made(2), f"{subject.stall}=delay(0.7)")
    victim.wait()
    new.write(2, made(2))
    new.write(3, made(3))
    # It succeeds if it committed first, and fails if it was fenced.
    victim.end()
    expect(subject, ordered(made(3) if subject.key else [*made(1), *made(2), *made(3)]))


def a_record_that_is_refused_goes_to_the_dead_letters(subject: Subject) -> None:
    if subject.poison is None:
        return
    hand = SubjectWriter(subject)
    bad = [{**row, "user": f"bad{number}", "note": subject.poison} for number, row in enumerate(made(1)[:2])]
    rows = [bad[0], *made(1)[:3], bad[1], *made(1)[3:]]
    assert hand.write(1, rows)
    assert not hand.write(1, rows)
    expect(subject, made(1))
    (letters,) = hand.letters.found.values()
    assert [row["user"] for row in letters] == ["bad0", "bad1"]
    assert all(row["reason"] for row in letters)


def a_table_replayed_from_the_beginning_by_a_new_job_ends_the_same(subject: Subject) -> None:
    if not subject.key:
        return
    for job in ("job-1", "job-2"):
        hand = SubjectWriter(subject, job=job)
        hand.write(1, made(1))
        hand.write(2, made(2)[:3], gone=made(1)[5:])
        expect(subject, [*made(2)[:3], *made(1)[3:5]])


CASES: tuple[Case, ...] = (
    an_epoch_written_twice_is_there_once,
    an_epoch_that_is_past_changes_nothing,
    the_last_epoch_of_each_task_is_told,
    each_task_has_its_own_epochs,
    the_facts_of_a_key_keep_their_order,
    a_table_holds_the_latest_of_each_key,
    values_come_through_as_they_are,
    a_writer_killed_at_any_step_has_written_all_or_nothing,
    a_write_that_fails_at_any_step_can_be_repeated,
    a_writer_of_an_earlier_run_is_shut_out,
    a_writer_held_up_before_its_commit_does_no_harm_when_it_wakes,
    a_record_that_is_refused_goes_to_the_dead_letters,
    a_table_replayed_from_the_beginning_by_a_new_job_ends_the_same,
)


def expect(subject: Subject, *either: Sequence[Row]) -> None:
    """Check that readers see one of these sets of rows, in any order, and no others.

    In some systems, committed rows become visible a moment later, each partition in its own time. No writer is active any more, so a part
    of an epoch that stays visible is detected.
    """
    deadline, wanted = time.monotonic() + _PATIENCE, [ordered(rows) for rows in either]
    while (found := ordered(subject.rows())) not in wanted:
        assert time.monotonic() < deadline, f"readers see {found}, not {' nor '.join(map(str, wanted))}"
        time.sleep(0.01)


def _fails(hand: SubjectWriter, step: int, rows: list[dict[str, Any]]) -> bool:
    with faults(f"*=error(EIO)@{step}"):
        try:
            hand.write(step, rows)
        except Exception:  # noqa: BLE001 - whatever the output makes of it
            return True
    return False
