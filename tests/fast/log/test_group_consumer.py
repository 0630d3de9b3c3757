"""Members of a group: joining, leaving, dying, and what each of them reads, with several logs on one directory and a set clock."""

import os
import re
from datetime import timedelta

import pytest

from headrace.core.errors import LogError, SettingsError
from headrace.log.errors import CorruptLog, Fenced, OffsetOutOfRange, TopicDeleted, UnknownTopic
from headrace.log.groups.coordinator import Coordinator
from tests.support.groups import indexes, poll, send


def test_one_member_reads_everything(clicks, log, join):
    for index in range(4):
        send(log, clicks, index, 2)
    assert sorted(poll(join())) == [(index, offset) for index in range(4) for offset in range(2)]


def test_a_partition_is_taken_only_after_its_owner_gave_it_up(clicks, join):
    first = join()
    second = join()
    assert indexes(first) == [0, 1, 2, 3]
    assert indexes(second) == []
    poll(second)
    assert indexes(second) == []
    poll(first)
    assert len(indexes(first)) == 2
    poll(second)
    assert sorted(indexes(first) + indexes(second)) == [0, 1, 2, 3]


def test_a_join_is_noticed_in_the_next_poll_without_a_heartbeat(clicks, join, clock):
    first = join()
    join()
    poll(first)
    assert len(indexes(first)) == 2


def test_partitions_that_stay_are_read_on_while_others_move(clicks, log, join):
    first = join(assignment="sticky")
    for index in range(4):
        send(log, clicks, index, 5)
    first.poll(timeout="0s", max_rows=3)
    second = join(assignment="sticky")
    before = first.positions()
    table = first.poll(timeout="0s", max_rows=1)
    assert table is not None
    stayed = first.positions()
    assert sum(stayed.values()) == sum(before[place] for place in stayed) + 1
    assert not set(second.assignment)


def test_what_moves_is_committed_first_and_read_on_by_the_new_owner(clicks, log, join):
    for index in range(4):
        send(log, clicks, index, 3)
    first = join()
    seen = poll(first)
    second = join()
    poll(first)
    for index in range(4):
        send(log, clicks, index, 1)
    seen += poll(first, second, first, second)
    assert sorted(seen) == [(index, offset) for index in range(4) for offset in range(4)]


def test_a_member_that_leaves_is_replaced_at_once(clicks, log, join):
    first, second = join(), join()
    poll(first, second)
    send(log, clicks, 0, 3)
    second.close()
    seen = poll(first)
    assert indexes(first) == [0, 1, 2, 3]
    assert sorted(seen) == [(0, 0), (0, 1), (0, 2)]


def test_a_dead_member_is_replaced_after_its_session_timeout(clicks, log, join, clock):
    first, second = join(), join()
    poll(first, second)
    clock.advance(timedelta(seconds=6))
    poll(first)
    clock.advance(timedelta(seconds=4))
    poll(first)
    assert len(indexes(first)) == 2
    clock.advance(timedelta(seconds=3, microseconds=1))
    poll(first)
    assert indexes(first) == [0, 1, 2, 3]
    assert len(log.describe_group("billing")["members"]) == 1
    del second


def test_more_members_than_partitions_leave_one_idle_until_another_goes(log, join):
    log.create_topic("narrow", partitions=2)
    members = [join("narrow", instance=name) for name in "abc"]
    poll(*members, *members)
    assert [indexes(member) for member in members] == [[0], [1], []]
    members[0].close()
    poll(*members[1:], *members[1:])
    assert sorted(indexes(members[1]) + indexes(members[2])) == [0, 1]


def test_new_partitions_are_noticed_at_the_next_heartbeat_and_read_from_their_beginning(log, join, clock):
    log.create_topic("growing", partitions=1)
    member = join("growing", start="end")
    log.alter_topic("growing", partitions=3)
    for index in range(3):
        send(log, "growing", index, 2)
    seen = poll(member)
    clock.advance(timedelta(seconds=3))
    seen += poll(member)
    assert sorted(seen) == [(index, offset) for index in range(3) for offset in range(2)]


def test_new_topics_of_a_pattern_are_noticed_and_read_from_their_beginning(log, join, clock):
    log.create_topic("orders-de")
    log.create_topic("returns")
    member = join(re.compile("orders-.*"), start="end")
    assert member.assignment == [("orders-de", 0)]
    log.create_topic("orders-fr")
    send(log, "orders-fr", 0, 2)
    clock.advance(timedelta(seconds=3))
    assert len(poll(member)) == 2
    assert member.assignment == [("orders-de", 0), ("orders-fr", 0)]


def test_a_deleted_topic_leaves_the_others_readable_and_comes_back_when_made_anew(log, join):
    for name in ("first", "second"):
        log.create_topic(name)
        send(log, name, 0, 3)
    member = join(["first", "second"])
    assert len(poll(member)) == 6
    log.delete_topic("first")
    send(log, "second", 0, 1)
    assert poll(member, member) == [(0, 3)]
    assert member.assignment == [("second", 0)]
    log.create_topic("first")
    send(log, "first", 0, 2)
    member.heartbeat()
    assert poll(member, member) == [(0, 0), (0, 1)]


def test_a_topic_deleted_and_made_anew_between_two_polls_is_read_from_its_beginning(log, join):
    log.create_topic("again")
    send(log, "again", 0, 5)
    member = join("again")
    assert len(poll(member)) == 5
    log.delete_topic("again")
    log.create_topic("again")
    send(log, "again", 0, 2)
    assert poll(member, member) == [(0, 0), (0, 1)]


@pytest.mark.parametrize("deleted", ["first", "second"])
def test_a_poll_that_fails_moves_no_partition_on(log, deleted):
    for name in ("first", "second"):
        log.create_topic(name)
    consumer = log.consumer(["first", "second"])
    poll(consumer)
    for name in ("first", "second"):
        send(log, name, 0, 2)
    log.delete_topic(deleted)
    for _ in range(2):
        with pytest.raises(TopicDeleted):
            consumer.poll(timeout="0s")
    consumer.drop([(deleted, 0)])
    assert poll(consumer) == [(0, 0), (0, 1)]


def test_members_with_different_topics_get_only_theirs(log, join):
    log.create_topic("left", partitions=2)
    log.create_topic("right", partitions=2)
    first, second = join(["left", "right"], instance="a"), join(["right"], instance="b")
    poll(first, second)
    assert first.assignment == [("left", 0), ("left", 1), ("right", 0)]
    assert second.assignment == [("right", 1)]


def test_callbacks_tell_what_comes_and_goes(clicks, join, clock):
    told = []

    def told_of(what):
        return lambda places: told.append((what, [index for _, index in places]))

    first = join(instance="a", on_assigned=told_of("assigned"), on_revoked=told_of("revoked"), on_lost=told_of("lost"))
    second = join(instance="b")
    poll(first, second)
    assert told == [("assigned", [0, 1, 2, 3]), ("revoked", [2, 3])]
    clock.advance(timedelta(seconds=11))
    poll(second)
    poll(first, second, first)
    assert told[2:] == [("lost", [0, 1]), ("assigned", [0, 1])]
    first.close()
    assert told[4:] == [("revoked", [0, 1])]


def test_on_revoked_may_commit(clicks, log, join):
    send(log, clicks, 3, 5)
    first = join(auto_commit=False, instance="a", on_revoked=lambda places: first.commit())
    poll(first)
    second = join(auto_commit=False, instance="b")
    poll(first)
    assert poll(second) == []
    assert second.positions()["clicks", 3] == 5


def test_a_member_taken_for_dead_cannot_commit_and_joins_anew_by_polling(clicks, log, join, clock):
    send(log, clicks, 0, 3)
    paused = join(auto_commit=False)
    assert len(poll(paused)) == 3
    before = paused.member_id
    clock.advance(timedelta(seconds=11))
    other = join(auto_commit=False)
    assert len(poll(other)) == 3
    with pytest.raises(Fenced, match="no longer in group 'billing'"):
        paused.commit()
    with pytest.raises(Fenced):
        paused.heartbeat()
    assert other.committed()["clicks", 0] is None
    poll(paused, other, paused)
    assert paused.member_id != before
    assert len(paused.assignment) == 2


def test_a_member_taken_for_dead_loses_quietly_what_it_would_commit_by_itself(clicks, log, join, clock):
    send(log, clicks, 0, 3)
    paused = join()
    poll(paused)
    clock.advance(timedelta(seconds=11))
    other = join()
    paused.close()
    assert len(poll(other)) == 3


def test_a_pause_that_nobody_noticed_costs_nothing(clicks, log, join, clock):
    send(log, clicks, 0, 3)
    paused = join(auto_commit=False)
    poll(paused)
    clock.advance(timedelta(hours=1))
    paused.commit()
    assert paused.committed()["clicks", 0] == 3


def test_a_member_that_looks_after_a_pause_does_not_expire_itself(clicks, log, join, clock):
    member = join()
    clock.advance(timedelta(seconds=11))
    roster = Coordinator(log, log.group("billing")).beat(member.member_id, ("clicks",), due=False)
    assert len(roster.members[member.member_id].owned) == 4


def test_heartbeats_keep_the_place_while_a_record_takes_long(clicks, join, clock):
    busy, other = join(), join()
    poll(busy, other)
    for _ in range(5):
        clock.advance(timedelta(seconds=6))
        busy.heartbeat()
        poll(other)
    assert len(indexes(busy)) == len(indexes(other)) == 2
    busy.commit()


def test_an_instance_that_comes_back_takes_the_place_of_the_one_before_at_once(clicks, log, join):
    crashed, other = (join(assignment="sticky", instance=name, auto_commit=False) for name in "ab")
    poll(crashed, other)
    had = crashed.assignment
    back = join(assignment="sticky", instance="a", auto_commit=False)
    assert back.assignment == had
    with pytest.raises(Fenced):
        crashed.commit()
    with pytest.raises(Fenced, match="has taken the place of instance 'a'"):
        crashed.poll(timeout="0s")
    poll(other)
    assert len(other.assignment) == 2


def test_an_instance_that_comes_back_has_the_partitions_it_had(log, join):
    log.create_topic("five", partitions=5)
    crashed, other = (join("five", assignment="sticky", instance=name) for name in ("z", "b"))
    poll(crashed, other)
    had = crashed.assignment
    assert len(had) == 3
    assert join("five", assignment="sticky", instance="z").assignment == had


def test_a_member_hears_of_changes_after_its_group_was_deleted_under_it(clicks, log, join, clock):
    asleep = join()
    clock.advance(timedelta(seconds=11))
    log.delete_group("billing")
    poll(asleep)
    assert len(asleep.assignment) == 4
    join()
    poll(asleep)
    assert len(asleep.assignment) == 2


def test_a_consumer_that_cannot_start_leaves_no_member_behind(clicks, log, join):
    with pytest.raises(OffsetOutOfRange):
        join(start=7)
    with pytest.raises(SettingsError, match="'middle' is not a place"):
        join(start="middle")
    with pytest.raises(SettingsError, match="cannot start at given offsets"):
        join(start={0: 1})
    assert log.describe_group("billing")["members"] == []
    assert len(join().assignment) == 4


def test_a_clock_set_back_neither_silences_a_member_nor_keeps_a_dead_one(clicks, join, clock):
    first, second = join(), join()
    poll(first, second)
    clock.advance(timedelta(hours=-1))
    poll(first)
    for _ in range(4):
        clock.advance(timedelta(seconds=3))
        poll(first)
    assert indexes(first) == [0, 1, 2, 3]
    del second


def test_polling_between_heartbeats_leaves_the_roster_file_alone(clicks, log, join, clock, tmp_path):
    member = join(auto_commit=False)
    poll(member, member)
    path = tmp_path / "log" / "groups" / "billing" / "roster.json"
    before = log.disk.stamp(path)
    path.rename(path.with_suffix(".away"))
    for _ in range(100):
        poll(member)
    assert not path.exists()
    path.with_suffix(".away").rename(path)
    assert log.disk.stamp(path) == before
    clock.advance(timedelta(seconds=3))
    poll(member)
    assert log.disk.stamp(path) != before


def test_members_must_agree_on_the_assignment(clicks, join):
    first = join(assignment="sticky")
    with pytest.raises(LogError, match="assignment is 'sticky', not 'range'"):
        join(assignment="range")
    first.close()
    assert len(join(assignment="range").assignment) == 4


def test_a_damaged_roster_is_detected(clicks, join, tmp_path):
    member = join()
    path = tmp_path / "log" / "groups" / "billing" / "roster.json"
    path.write_bytes(path.read_bytes().replace(b"range", b"rangf"))
    with pytest.raises(CorruptLog, match=r"roster.json has been changed or damaged"):
        poll(member)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0b", "x" * 250])
def test_a_name_that_is_no_directory_is_no_group(clicks, join, name):
    with pytest.raises(LogError, match="is not a group name"):
        join(group=name)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"assignment": "fair"}, "assignment='fair' is not known"),
        ({"session_timeout": "1s", "heartbeat_interval": "1s"}, "heartbeat_interval is 1 second"),
        ({"commit_interval": timedelta(seconds=-1)}, "commit_interval is -1 second"),
        ({"isolation": "dirty"}, "isolation='dirty' is not known"),
    ],
)
def test_settings_without_meaning_are_refused(clicks, log, join, settings, words):
    with pytest.raises(SettingsError, match=words):
        join(**settings)
    assert log.group_names() == []


def test_an_unknown_topic_is_refused_before_joining(clicks, log, join):
    with pytest.raises(UnknownTopic):
        join(["clicks", "clocks"])
    assert log.group_names() == []


def test_a_setting_of_members_needs_a_group(clicks, log):
    with pytest.raises(SettingsError, match="'auto_commit' is a setting of a group's members"):
        log.consumer("clicks", auto_commit=True)


def test_a_member_does_not_choose_its_partitions(clicks, join):
    member = join()
    with pytest.raises(LogError, match="is assigned its partitions"):
        member.assign([("clicks", 0)])
    with pytest.raises(LogError, match="is assigned its partitions"):
        member.drop([("clicks", 0)])


def test_a_closed_member_says_so(clicks, join):
    member = join()
    member.close()
    member.close()
    for call in (member.poll, member.commit, member.heartbeat):
        with pytest.raises(LogError, match="this consumer is closed"):
            call()


def test_a_member_is_not_shared_with_a_forked_process(clicks, log, join, monkeypatch):
    member = join()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        for call in (member.poll, member.commit, member.heartbeat):
            with pytest.raises(LogError, match="belongs to process"):
                call()
        member.close()
    poll(member)
    assert len(member.assignment) == 4
