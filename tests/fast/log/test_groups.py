"""Groups from the outside: listed, described, moved and deleted."""

from datetime import UTC, datetime, timedelta

import pytest

from headrace.core.clock import to_datetime
from headrace.core.errors import LogError, SettingsError
from headrace.log.errors import Fenced, GroupInUse, OffsetOutOfRange, UnknownGroup, UnknownTopic
from tests.support.groups import poll, send


@pytest.fixture
def stopped(clicks, log, join):
    """A group that has read three of five records of partition 1, and has stopped."""
    send(log, clicks, 1, 3)
    with join() as member:
        poll(member)
    send(log, clicks, 1, 2)
    return "billing"


def committed(log, group="billing"):
    return {index: found.offset for (_, index), found in log.offsets.of(group).items()}


def test_groups_are_listed_whether_they_have_members_or_only_offsets(stopped, log, join):
    join(group="audit")
    with log.producer(transactional_id="copy") as producer, producer.transaction():
        producer.send_offsets("nightly", {("clicks", 0): 0})
    assert log.group_names() == ["audit", "billing", "nightly"]


def test_a_description_has_members_and_the_progress_of_each_partition(clicks, log, join, clock):
    first, second = join(instance="a"), join(instance="b")
    send(log, clicks, 1, 5)
    poll(first, second)
    clock.advance(timedelta(seconds=5))
    poll(first, second)
    send(log, clicks, 1, 2)
    found = log.describe_group("billing")
    assert (found["name"], found["state"], found["generation"], found["assignment"]) == ("billing", "stable", 2, "range")
    assert [(member["instance"], member["partitions"]) for member in found["members"]] == [
        ("a", [("clicks", 0), ("clicks", 1)]),
        ("b", [("clicks", 2), ("clicks", 3)]),
    ]
    assert found["members"][0]["heartbeat_at"] == to_datetime(clock.now())
    progress = found["partitions"][1]
    assert {name: progress[name] for name in ("topic", "partition", "committed", "start", "end", "lag", "member")} == {
        "topic": "clicks", "partition": 1, "committed": 5, "start": 0, "end": 7, "lag": 2, "member": first.member_id,
    }  # fmt: skip


def test_a_group_is_rebalancing_until_every_partition_is_where_it_should_be(clicks, log, join):
    first, second = join(), join()
    assert log.describe_group("billing")["state"] == "rebalancing"
    poll(first, second)
    assert log.describe_group("billing")["state"] == "stable"


def test_a_dead_member_is_not_described_after_it_has_expired(clicks, log, join, clock):
    member = join()
    clock.advance(timedelta(seconds=11))
    found = log.describe_group("billing")
    assert (found["state"], found["members"]) == ("empty", [])
    del member


def test_lag_in_seconds_is_how_far_event_time_has_gone_on(log, join, clock):
    log.create_topic("timed", schema="name string, at timestamp", time="at")
    begin = to_datetime(clock.now())
    with log.producer() as producer:
        for minutes in (0, 1, 3, 7):
            producer.send("timed", {"name": str(minutes), "at": begin - timedelta(hours=1) + timedelta(minutes=minutes)})
    member = join("timed", auto_commit=False)

    def lag():
        (progress,) = log.describe_group("billing")["partitions"]
        return progress["lag"], progress["lag_seconds"]

    seen = [lag()]
    for _ in range(4):
        member.poll(timeout="0s", max_rows=1)
        member.commit()
        seen.append(lag())
    assert seen == [(4, 420.0), (3, 420.0), (2, 360.0), (1, 240.0), (0, 0.0)]


def test_a_partition_without_records_has_no_lag(clicks, log, join):
    join()
    assert {(row["lag"], row["lag_seconds"], row["committed"]) for row in log.describe_group("billing")["partitions"]} == {(0, 0.0, None)}


def test_a_group_goes_on_from_where_it_was_moved_to(stopped, log, join):
    assert committed(log) == {0: 0, 1: 3, 2: 0, 3: 0}
    assert log.seek_group("billing", "clicks", "beginning") == {("clicks", index): 0 for index in range(4)}
    assert log.seek_group("billing", "clicks", 4, partition=1) == {("clicks", 1): 4}
    assert poll(join()) == [(1, 4)]


def test_a_group_can_be_moved_to_the_end_or_to_a_time(stopped, log, clock):
    clock.advance(timedelta(seconds=1))
    later = to_datetime(clock.now())
    send(log, "clicks", 1, 2)
    log.seek_group("billing", "clicks", later)
    assert committed(log)[1] == 5
    log.seek_group("billing", "clicks", "end")
    assert committed(log)[1] == 7


@pytest.mark.parametrize(
    ("topic", "place", "partition", "error"),
    [
        ("clicks", -1, None, OffsetOutOfRange),
        ("clicks", 6, 1, OffsetOutOfRange),
        ("clicks", "middle", None, SettingsError),
        ("clicks", 0, 4, LogError),
        ("clocks", 0, None, UnknownTopic),
    ],
)
def test_a_place_that_is_not_there_moves_nothing(stopped, log, topic, place, partition, error):
    before = committed(log)
    with pytest.raises(error):
        log.seek_group("billing", topic, place, partition)
    assert committed(log) == before


def test_a_group_with_live_members_is_not_moved_reset_or_deleted(stopped, log, join):
    member = join()
    for call in (lambda: log.seek_group("billing", "clicks", 0), lambda: log.reset_group("billing"), lambda: log.delete_group("billing")):
        with pytest.raises(GroupInUse, match=r"group 'billing' has 1 live members: .*") as caught:
            call()
        assert member.member_id in str(caught.value)
    assert committed(log)[1] == 3


def test_a_member_that_was_silent_while_its_group_was_moved_cannot_commit(stopped, log, join, clock):
    silent = join(auto_commit=False)
    poll(silent)
    clock.advance(timedelta(seconds=11))
    log.seek_group("billing", "clicks", "beginning")
    with pytest.raises(Fenced):
        silent.commit()
    assert sorted(poll(silent, silent)) == [(1, offset) for offset in range(5)]


def test_a_reset_group_begins_at_its_start_again(stopped, log, join, open_log):
    log.reset_group("billing")
    assert committed(log) == committed(open_log()) == {}
    assert join(start="end").positions()["clicks", 1] == 5


def test_a_group_can_be_reset_in_one_topic(stopped, log, join):
    log.create_topic("views")
    with join("views"):
        pass
    log.reset_group("billing", "clicks")
    assert list(log.offsets.of("billing")) == [("views", 0)]


def test_a_deleted_group_is_gone_and_may_come_again(stopped, log, join, open_log):
    log.delete_group("billing")
    assert log.group_names() == open_log().group_names() == []
    with pytest.raises(UnknownGroup, match="there is no group 'billing'"):
        log.describe_group("billing")
    first = join()
    second = join()
    poll(first, second)
    assert len(first.assignment) == len(second.assignment) == 2


@pytest.mark.parametrize("name", ["nobody", "clicks"])
def test_an_unknown_group_is_named_with_those_that_are_there(stopped, log, name):
    for call in (log.describe_group, log.delete_group, log.reset_group, lambda name: log.seek_group(name, "clicks", 0)):
        with pytest.raises(UnknownGroup) as caught:
            call(name)
        assert "groups here: billing" in str(caught.value)


def test_a_name_outside_of_the_log_is_refused(log):
    for name in ("..", "a/../b", ""):
        with pytest.raises(LogError, match="is not a group name"):
            log.delete_group(name)


def test_a_time_before_everything_is_the_beginning(stopped, log):
    log.seek_group("billing", "clicks", datetime(1970, 1, 1, tzinfo=UTC))
    assert committed(log)[1] == 0
