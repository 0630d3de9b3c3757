"""Range and sticky assignment, for any group that hypothesis thinks of."""

from collections import Counter
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.log.groups.assignment import assigned, ranges, sticky
from tests.support.examples import examples

MEMBERS = st.sets(st.sampled_from([f"m{number}" for number in range(8)]), min_size=1)
TOPICS = ["clicks", "orders", "views"]
SIZES = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 6), min_size=1)


def partitions_of(sizes):
    return [(topic, index) for topic in sizes for index in range(sizes[topic])]


@st.composite
def equal_groups(draw):
    """Members that all read the same topics, and what each had before: members may have gone, partitions may have come."""
    sizes = draw(SIZES)
    members = draw(MEMBERS)
    before = draw(st.lists(st.sampled_from([*sorted(members), "gone", None]), min_size=6, max_size=18))
    owned = {}
    for place, member in zip(partitions_of(sizes), before, strict=False):
        if member:
            owned.setdefault(member, []).append(place)
    return dict.fromkeys(sorted(members), tuple(sizes)), sizes, owned


@st.composite
def mixed_groups(draw):
    """Few members with topics of their own, small enough to try every assignment."""
    sizes = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 2), min_size=1))
    subscriptions = draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sets(st.sampled_from(TOPICS), min_size=1), min_size=1))
    owned = {}
    for place in partitions_of(sizes):
        holders = sorted(member for member, topics in subscriptions.items() if place[0] in topics)
        holder = draw(st.sampled_from([*holders, None]))
        if holder:
            owned.setdefault(holder, []).append(place)
    return subscriptions, sizes, owned


def kept(plan, owned):
    return sum(len(set(plan[member]) & set(owned.get(member, []))) for member in plan)


@settings(max_examples=examples(30))
@given(equal_groups(), st.sampled_from(["range", "sticky"]))
def test_every_partition_has_one_member_that_reads_its_topic(group, strategy):
    subscriptions, sizes, owned = group
    plan = assigned(strategy, subscriptions, sizes, owned)
    assert sorted(place for places in plan.values() for place in places) == sorted(partitions_of(sizes))
    assert set(plan) == set(subscriptions)


@settings(max_examples=examples(30))
@given(mixed_groups(), st.sampled_from(["range", "sticky"]))
def test_members_get_only_topics_they_read_and_topics_without_readers_wait(group, strategy):
    subscriptions, sizes, owned = group
    plan = assigned(strategy, subscriptions, sizes, owned)
    readable = [place for place in partitions_of(sizes) if any(place[0] in topics for topics in subscriptions.values())]
    assert sorted(place for places in plan.values() for place in places) == sorted(readable)
    assert all(topic in subscriptions[member] for member, places in plan.items() for topic, _ in places)


@settings(max_examples=examples(30))
@given(equal_groups())
def test_a_range_is_a_run_of_neighbours_and_runs_differ_by_one_at_most(group):
    subscriptions, sizes, _ = group
    plan = ranges(subscriptions, sizes)
    for topic in sizes:
        runs = [[index for name, index in places if name == topic] for places in plan.values()]
        assert all(run == list(range(run[0], run[0] + len(run))) for run in runs if run)
        assert max(map(len, runs)) - min(map(len, runs)) <= 1
        assert [index for run in runs for index in run] == list(range(sizes[topic]))


@settings(max_examples=examples(30))
@given(equal_groups())
def test_sticky_is_balanced_within_one(group):
    loads = [len(places) for places in sticky(*group).values()]
    assert max(loads) - min(loads) <= 1


@settings(max_examples=examples(30))
@given(equal_groups())
def test_sticky_moves_the_fewest_partitions_that_balance_allows(group):
    subscriptions, sizes, owned = group
    floor, larger = divmod(sum(sizes.values()), len(subscriptions))
    # The best that any balanced plan can keep: all quotas are `floor`, and the fullest members get the larger ones.
    had = sorted((len(owned.get(member, [])) for member in subscriptions), reverse=True)
    best = sum(min(count, floor + (place < larger)) for place, count in enumerate(had))
    assert kept(sticky(subscriptions, sizes, owned), owned) == best


@settings(max_examples=examples(30))
@given(mixed_groups())
def test_sticky_is_as_level_as_any_plan_can_be_when_members_read_different_topics(group):
    subscriptions, sizes, owned = group
    readers = [[member for member in subscriptions if topic in subscriptions[member]] for topic, _ in partitions_of(sizes)]
    plans = product(*(names for names in readers if names))
    levelest = min(sum(load * load for load in Counter(plan).values()) for plan in plans)
    assert sum(len(places) ** 2 for places in sticky(subscriptions, sizes, owned).values()) == levelest


@settings(max_examples=examples(30))
@given(equal_groups(), st.sampled_from(["range", "sticky"]))
def test_the_same_group_gets_the_same_plan_whatever_the_order_of_its_members(group, strategy):
    subscriptions, sizes, owned = group
    backwards = dict(reversed(subscriptions.items())), dict(reversed(sizes.items())), dict(reversed(owned.items()))
    assert assigned(strategy, *backwards) == assigned(strategy, subscriptions, sizes, owned)


@settings(max_examples=examples(30))
@given(equal_groups())
def test_a_sticky_plan_asked_for_again_moves_nothing(group):
    subscriptions, sizes, owned = group
    plan = sticky(subscriptions, sizes, owned)
    assert sticky(subscriptions, sizes, plan) == plan


def test_a_partition_that_two_members_claim_stays_with_one():
    assert sticky({"a": ["t"], "b": ["t"]}, {"t": 2}, {"a": [("t", 0)], "b": [("t", 0)]}) == {"a": [("t", 0)], "b": [("t", 1)]}


def test_more_members_than_partitions_leave_some_idle():
    for strategy in ("range", "sticky"):
        plan = assigned(strategy, dict.fromkeys("abc", ("t",)), {"t": 2}, {})
        assert sorted(len(places) for places in plan.values()) == [0, 1, 1]


def test_topics_of_equal_size_are_cut_alike():
    plan = ranges(dict.fromkeys("abc", ("left", "right")), {"left": 7, "right": 7})
    for places in plan.values():
        assert [index for topic, index in places if topic == "left"] == [index for topic, index in places if topic == "right"]


def test_a_thousand_partitions_taken_over_from_one_member_are_spread_over_fifty():
    members = {f"m{number:02}": ["t"] for number in range(50)}
    plan = sticky(members, {"t": 1000}, {"m00": [("t", index) for index in range(1000)]})
    assert {len(places) for places in plan.values()} == {20}
