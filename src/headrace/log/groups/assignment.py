"""Assignment of partitions to the members of a group: pure functions, so that every process computes the same answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
Subscriptions: TypeAlias = Mapping[str, Collection[str]]
Assignment: TypeAlias = dict[str, list[TopicPartition]]

STRATEGIES = ("range", "sticky")


def assigned(
    strategy: str, subscriptions: Subscriptions, sizes: Mapping[str, int], owned: Mapping[str, Iterable[TopicPartition]]
) -> Assignment:
    """The partitions of each member, by the strategy of this name."""
    return sticky(subscriptions, sizes, owned) if strategy == "sticky" else ranges(subscriptions, sizes)


def ranges(subscriptions: Subscriptions, sizes: Mapping[str, int]) -> Assignment:
    """Split each topic into runs of neighboring partitions, one for each member, in the order of their names; the first ones take the
    remainder.

    Topics with the same number of partitions and the same members are split alike, so that records with the same key are co-located.

    >>> ranges({"a": ["clicks", "views"], "b": ["clicks", "views"]}, {"clicks": 3, "views": 3})["a"]
    [('clicks', 0), ('clicks', 1), ('views', 0), ('views', 1)]
    """
    plan: Assignment = {member: [] for member in sorted(subscriptions)}
    for topic in sorted(sizes):
        readers = [member for member in plan if topic in subscriptions[member]]
        first = 0
        for place, member in enumerate(readers):
            count = sizes[topic] // len(readers) + (place < sizes[topic] % len(readers))
            plan[member] += [(topic, index) for index in range(first, first + count)]
            first += count
    return plan


def sticky(subscriptions: Subscriptions, sizes: Mapping[str, int], owned: Mapping[str, Iterable[TopicPartition]]) -> Assignment:
    """Give all members as equal a number of partitions as their topics allow, and move as few as possible.

    >>> sticky({"a": ["t"], "b": ["t"]}, {"t": 3}, {"a": [("t", 0), ("t", 1), ("t", 2)]})
    {'a': [('t', 0), ('t', 1)], 'b': [('t', 2)]}
    """
    plan = _Plan(subscriptions, sizes)
    for member in sorted(set(owned) & set(subscriptions)):
        for topic, index in sorted(owned[member]):
            plan.keep(member, topic, index)
    plan.give_the_rest()
    while plan.level():
        pass
    return plan.result()


class _Plan:
    """A sticky assignment in progress: the members that may read a topic, and the present and previous owner of each partition."""

    def __init__(self, subscriptions: Subscriptions, sizes: Mapping[str, int]) -> None:
        members = sorted(subscriptions)
        self._readers = {topic: [member for member in members if topic in subscriptions[member]] for topic in sorted(sizes)}
        self._free = {topic: set(range(sizes[topic])) for topic in self._readers}
        self._held: dict[str, dict[str, set[int]]] = {member: {} for member in members}
        self._loads = dict.fromkeys(members, 0)
        self._homes: dict[TopicPartition, str] = {}

    def keep(self, member: str, topic: str, index: int) -> None:
        if index in self._free.get(topic, ()) and member in self._readers[topic]:
            self._homes[topic, index] = member
            self._free[topic].remove(index)
            self._put(member, topic, index)

    def give_the_rest(self) -> None:
        for topic, indexes in self._free.items():
            for index in sorted(indexes) if self._readers[topic] else ():
                self._put(min(self._readers[topic], key=self._loads.__getitem__), topic, index)

    def level(self) -> bool:
        """Move one partition from a member to another that has at least two fewer; False if no such pair is left.

        Members with different topics may need a chain: one passes a partition to a second, which passes another to a third.
        """
        for start in sorted(self._loads, key=lambda member: -self._loads[member]):
            came_from = self._reachable(start)
            lightest = min(came_from, key=self._loads.__getitem__)
            if self._loads[lightest] <= self._loads[start] - 2:
                member = lightest
                while member != start:
                    giver, topic = came_from[member]
                    self._move(giver, member, topic)
                    member = giver
                return True
        return False

    def result(self) -> Assignment:
        return {member: [(topic, index) for topic in sorted(held) for index in sorted(held[topic])] for member, held in self._held.items()}

    def _reachable(self, start: str) -> dict[str, tuple[str, str]]:
        """Every member that a partition can reach from `start`, nearest first, with the giver and the topic of the last step."""
        came_from = {start: (start, "")}
        traveled: set[str] = set()
        waiting = [start]
        for member in waiting:
            for topic in [topic for topic, indexes in self._held[member].items() if indexes and topic not in traveled]:
                traveled.add(topic)
                for reader in self._readers[topic]:
                    if reader not in came_from:
                        came_from[reader] = (member, topic)
                        waiting.append(reader)
        return came_from

    def _move(self, giver: str, taker: str, topic: str) -> None:
        # A partition that returns home costs nothing, and one that moves anyway costs no more; only then take one that the giver had
        # before.
        def cost(index: int) -> tuple[bool, bool, int]:
            home = self._homes.get((topic, index))
            return home != taker, home == giver, -index

        index = min(self._held[giver][topic], key=cost)
        self._held[giver][topic].remove(index)
        self._loads[giver] -= 1
        self._put(taker, topic, index)

    def _put(self, member: str, topic: str, index: int) -> None:
        self._held[member].setdefault(topic, set()).add(index)
        self._loads[member] += 1
