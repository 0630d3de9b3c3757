"""Committed offsets: by hand, by themselves, in transactions; what may be committed, by whom, and what is kept."""

from datetime import timedelta

import pytest

from headrace.core.errors import LogError
from headrace.log.errors import Fenced, OffsetOutOfRange, TransactionState, UnknownTopic
from tests.support.groups import poll, send

PLACE = ("payments", 0)


@pytest.fixture
def payments(log):
    """Ten records in one partition."""
    log.create_topic("payments")
    send(log, "payments", 0, 10)
    return "payments"


@pytest.fixture
def member(payments, join):
    return join(payments, auto_commit=False)


def committed(log, group="billing"):
    return {place: found.offset for place, found in log.offsets.of(group).items()}


def test_a_commit_is_seen_by_every_process_and_after_a_restart(member, log, open_log):
    member.poll(timeout="0s", max_rows=4)
    member.commit()
    assert committed(log) == committed(open_log()) == {PLACE: 4}
    assert member.committed() == {PLACE: 4}


def test_committing_after_processing_repeats_what_a_crash_interrupted(member, join, clock):
    poll(member)  # processed, and then it dies
    clock.advance(timedelta(seconds=11))
    assert len(poll(join("payments"))) == 10


def test_committing_before_processing_never_repeats(member, join, clock):
    poll(member)
    member.commit()  # it dies before it has processed anything
    clock.advance(timedelta(seconds=11))
    assert poll(join("payments")) == []


def test_given_offsets_are_committed_with_their_metadata(member, log, clock):
    member.commit({PLACE: 7}, metadata="checked by hand")
    found = log.offsets.of("billing")[PLACE]
    assert (found.offset, found.metadata, found.committed_at, found.generation) == (7, "checked by hand", clock.now(), 1)


@pytest.mark.parametrize(
    ("offsets", "error", "words"),
    [
        ({PLACE: -1}, OffsetOutOfRange, "offset -1 of partition 0 of topic 'payments' cannot be committed"),
        ({PLACE: 11}, OffsetOutOfRange, "the partition ends at 10"),
        ({("payments", 1): 0}, LogError, "has no partition 1"),
        ({("paiments", 0): 0}, UnknownTopic, "there is no topic 'paiments'"),
        ({PLACE: "3"}, LogError, "'3' is not an offset"),
    ],
)
def test_an_offset_that_the_log_does_not_have_is_refused_and_nothing_is_written(member, log, offsets, error, words):
    with pytest.raises(error) as caught:
        member.commit({PLACE: 5} | offsets)
    assert words in str(caught.value)
    assert committed(log) == {}


def test_only_the_reader_of_a_partition_may_commit_for_it(payments, log, join):
    log.alter_topic("payments", partitions=2)
    first, second = join(payments, instance="a", auto_commit=False), join(payments, instance="b", auto_commit=False)
    poll(first, second)
    with pytest.raises(Fenced, match="does not read partition 1"):
        first.commit({("payments", 0): 1, ("payments", 1): 0})
    assert committed(log) == {}


def test_auto_commit_waits_for_its_interval_and_for_the_poll_after(payments, log, join, clock):
    member = join(payments, commit_interval="5s")
    member.poll(timeout="0s", max_rows=4)
    assert committed(log) == {}
    clock.advance(timedelta(seconds=5))
    assert committed(log) == {}
    member.poll(timeout="0s", max_rows=4)
    assert committed(log) == {PLACE: 4}
    member.poll(timeout="0s", max_rows=1)
    assert committed(log) == {PLACE: 4}


def test_a_member_whose_own_commit_is_refused_joins_anew_before_it_reads_on(payments, log, join, clock):
    paused = join(payments, commit_interval="1s", heartbeat_interval="30s", session_timeout="31s")
    poll(paused)
    log.group("billing").change(lambda roster: roster.left(paused.member_id))
    clock.advance(timedelta(seconds=1))
    before = paused.member_id
    assert len(poll(paused)) == 10
    assert paused.member_id != before


def test_closing_commits_what_was_read(payments, log, join):
    with join(payments) as member:
        member.poll(timeout="0s", max_rows=4)
    assert committed(log) == {PLACE: 4}


def test_closing_after_an_error_does_not_commit_the_records_that_failed(payments, log, join):
    def fail_at_the_second_poll():
        with join(payments) as member:
            member.poll(timeout="0s", max_rows=4)
            member.poll(timeout="0s", max_rows=4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_the_second_poll()
    assert committed(log) == {PLACE: 4}


def test_a_member_without_auto_commit_commits_nothing_by_itself(member, log, clock):
    poll(member)
    clock.advance(timedelta(seconds=9))
    poll(member)
    member.close()
    assert committed(log) == {}


def test_an_idle_member_does_not_write_the_same_commit_again(payments, log, join, clock):
    member = join(payments)
    for _ in range(5):
        clock.advance(timedelta(seconds=5))
        poll(member)
    assert log.read("__offsets").num_rows == 2


def test_a_group_that_starts_at_the_end_keeps_that_place(payments, log, join, clock):
    join(payments, start="end")  # dies at once
    send(log, payments, 0, 3)
    clock.advance(timedelta(seconds=11))
    assert poll(join(payments, start="end")) == [(0, 10), (0, 11), (0, 12)]


def test_start_counts_only_for_what_is_not_committed(payments, log, join):
    with join(payments) as member:
        member.poll(timeout="0s", max_rows=4)
    with join(payments, start="end") as member:
        assert member.positions() == {PLACE: 4}


def test_a_group_whose_records_retention_removed_goes_on_at_the_first_that_is_left(payments, log, join):
    with join(payments) as member:
        member.poll(timeout="0s", max_rows=4)
    log.partition(log.topic(payments), 0).raise_start(6)
    assert join(payments).positions() == {PLACE: 6}


def test_offsets_of_a_deleted_topic_do_not_count_for_one_of_the_same_name(payments, log, join):
    with join(payments) as member:
        poll(member)
    log.delete_topic(payments)
    log.create_topic(payments)
    send(log, payments, 0, 2)
    assert poll(join(payments)) == [(0, 0), (0, 1)]


def test_offsets_sent_for_a_deleted_topic_do_not_count_for_one_of_the_same_name(payments, log, join):
    with log.producer(transactional_id="copy") as producer, producer.transaction():
        producer.send_offsets("billing", {PLACE: 10})
    log.delete_topic(payments)
    log.create_topic(payments)
    send(log, payments, 0, 2)
    assert poll(join(payments)) == [(0, 0), (0, 1)]


def test_compaction_keeps_every_committed_offset(member, log, open_log):
    for offset in range(10):
        member.commit({PLACE: offset})
    log.partition(log.topic("__offsets"), 0).roll()
    log.maintain("__offsets", force=True)
    assert log.read("__offsets").num_rows == 1
    assert committed(open_log()) == {PLACE: 9}


def test_a_process_that_did_not_look_for_long_does_not_remember_what_was_forgotten(member, log, open_log, clock):
    member.commit({PLACE: 4})
    member.close()
    early = open_log()
    assert committed(early) == {PLACE: 4}
    log.reset_group("billing")
    for _ in range(2):
        log.partition(log.topic("__offsets"), 0).roll()
        log.maintain("__offsets", force=True)
        clock.advance(timedelta(days=2))
        log.offsets.forget("other", [PLACE])
    assert "billing" not in log.read("__offsets", columns=["group"])["group"].to_pylist()
    assert committed(early) == {}


def test_groups_do_not_see_each_others_offsets(payments, join):
    with join(payments, group="billing") as member:
        poll(member)
    assert len(poll(join(payments, group="audit"))) == 10


# In transactions


@pytest.fixture
def results(log):
    log.create_topic("results")
    return "results"


def copy_some(member, producer, rows):
    """Read, process and write in one transaction."""
    with producer.transaction():
        table = member.poll(timeout="0s", max_rows=rows)
        producer.send_table("results", table.select(["value"]))
        producer.send_offsets(member)


def values(log):
    return log.read("results")["value"].to_pylist()


def test_offsets_count_with_the_records_of_their_transaction(member, results, log, open_log):
    with log.producer(transactional_id="copy") as producer:
        producer.begin_transaction()
        table = member.poll(timeout="0s", max_rows=4)
        producer.send_table("results", table.select(["value"]))
        producer.send_offsets(member, {PLACE: 4})
        assert committed(log) == committed(open_log()) == {}
        producer.commit_transaction()
    assert committed(log) == committed(open_log()) == {PLACE: 4}
    assert len(values(log)) == 4


def test_an_aborted_transaction_commits_no_offset_and_rewinding_reads_again(member, results, log):
    with log.producer(transactional_id="copy") as producer:
        producer.begin_transaction()
        poll(member)
        producer.send_offsets(member)
        producer.abort_transaction()
        assert committed(log) == {}
        assert poll(member) == []
        member.rewind()
        copy_some(member, producer, 10)
    assert len(values(log)) == 10


def test_a_commit_is_refused_when_others_have_taken_over_and_its_records_never_show(member, results, log, join, open_log, clock):
    zombie = log.producer(transactional_id="zombie")
    zombie.begin_transaction()
    zombie.send_table("results", member.poll(timeout="0s").select(["value"]))
    zombie.send_offsets(member)
    clock.advance(timedelta(seconds=11))
    heir = join("payments", auto_commit=False)
    with open_log().producer(transactional_id="heir") as producer:
        copy_some(heir, producer, 10)
    with pytest.raises(Fenced, match="no longer in group"):
        zombie.commit_transaction()
    assert sorted(values(log)) == sorted(str(number).encode() for number in range(10))
    assert committed(log) == {PLACE: 10}
    # The writer itself is sound, and works on as a new member.
    member.poll(timeout="0s")
    with zombie.transaction():
        zombie.send_table("results", log.read("payments").slice(0, 1).select(["value"]))
    assert len(values(log)) == 11


def test_an_open_transaction_does_not_hold_up_who_takes_over(member, results, log, join, clock):
    dead = log.producer(transactional_id="dead")
    dead.begin_transaction()
    poll(member)
    dead.send_offsets(member)
    clock.advance(timedelta(seconds=11))
    heir = join("payments", auto_commit=False)
    assert heir.positions() == {PLACE: 0}
    heir.commit({PLACE: 3})
    assert committed(log) == {PLACE: 3}


def test_a_group_name_alone_commits_without_members(payments, results, log):
    with log.producer(transactional_id="copy") as producer, producer.transaction():
        producer.send_offsets("nightly", {PLACE: 10})
    assert committed(log, "nightly") == {PLACE: 10}
    assert log.group_names() == ["nightly"]


@pytest.mark.parametrize("offset", [-1, 11])
def test_a_transaction_takes_no_offset_that_the_log_does_not_have(member, log, offset):
    with log.producer(transactional_id="copy") as producer, pytest.raises(OffsetOutOfRange), producer.transaction():
        producer.send_offsets(member, {PLACE: offset})
    assert committed(log) == {}


def test_offsets_need_a_transaction_and_a_consumer_that_leaves_committing_to_it(member, payments, log, join):
    with log.producer(transactional_id="copy") as producer:
        with pytest.raises(TransactionState, match="no transaction is open"):
            producer.send_offsets(member)
        with pytest.raises(TransactionState, match="commits by itself"), producer.transaction():
            producer.send_offsets(join(payments, group="other", auto_commit=True))
        with pytest.raises(LogError, match="no offsets are given"), producer.transaction():
            producer.send_offsets("billing")


def test_two_members_of_one_group_may_share_a_transaction(payments, results, log, join):
    log.alter_topic(payments, partitions=2)
    members = [join(payments, instance=name, auto_commit=False) for name in "ab"]
    poll(*members)
    poll(*members)
    with log.producer(transactional_id="copy") as producer, producer.transaction():
        for member in members:
            producer.send_offsets(member)
    assert committed(log) == {("payments", 0): 10, ("payments", 1): 0}


def test_a_decision_that_comes_late_does_not_overtake_a_later_commit(member, log, open_log):
    with log.producer(transactional_id="copy") as producer:
        producer.begin_transaction()
        producer.send_offsets(member, {PLACE: 3})
        member.commit({PLACE: 5})
        assert committed(log) == {PLACE: 5}
        producer.commit_transaction()
    assert committed(log) == committed(open_log()) == {PLACE: 5}
