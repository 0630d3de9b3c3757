"""Seeded lives of a group: whatever happens, in whatever order, every step keeps what a group promises."""

import random
from collections import defaultdict
from datetime import timedelta

import pytest

from headrace.log.errors import Fenced
from tests.support.examples import seeds
from tests.support.groups import send


class Story:
    """A random life of a group: members come, go, die and pause; records and partitions are added; every step is checked."""

    def __init__(self, seed, log, open_log, clock):
        self.random = random.Random(seed)
        self.log, self.open_log, self.clock = log, open_log, clock
        self.strategy = self.random.choice(["range", "sticky"])
        self.live, self.paused = [], []
        self.processed = defaultdict(int)
        self.committed = {}
        log.create_topic("story", partitions=3)

    def step(self):
        actions = [self.join, self.leave, self.die, self.pause, self.wake, self.write, self.widen, self.wait] + [self.poll] * 12
        self.random.choice(actions)()
        held = [place for member in self.live for place in member.assignment]
        assert len(held) == len(set(held))
        for place, committed in self.log.offsets.of("group").items():
            assert committed.offset >= self.committed.get(place, 0)
            self.committed[place] = committed.offset

    def join(self):
        if len(self.live) < 6:
            self.live.append(self.open_log().consumer("story", group="group", assignment=self.strategy, commit_interval="1s"))

    def leave(self):
        if self.live:
            self.live.pop(self.random.randrange(len(self.live))).close()

    def die(self):
        """Never heard of again: only the clock tells the others."""
        if self.live:
            self.live.pop(self.random.randrange(len(self.live)))
            self.expire()

    def pause(self):
        if self.live:
            self.paused.append(self.live.pop(self.random.randrange(len(self.live))))
            self.expire()

    def expire(self):
        for _ in range(4):
            self.clock.advance(timedelta(seconds=4))
            for member in self.live:
                self.read(member)

    def wake(self):
        """A member that the others count as dead: whatever it still does has no effect, then it is one of them again."""
        if self.paused:
            member = self.paused.pop()
            if self.live:
                with pytest.raises(Fenced):
                    member.commit(dict.fromkeys(member.assignment, 0) or None)
            self.read(member)
            self.live.append(member)

    def write(self):
        send(self.log, "story", self.random.randrange(self.log.topic("story").partitions), self.random.randrange(1, 5))

    def widen(self):
        count = self.log.topic("story").partitions
        if count < 7:
            self.log.alter_topic("story", partitions=count + 1)

    def wait(self):
        self.clock.advance(timedelta(seconds=self.random.uniform(0, 2)))

    def poll(self):
        if self.live:
            self.read(self.random.choice(self.live))

    def read(self, member):
        table = member.poll(timeout="0s", max_rows=self.random.randrange(1, 10))
        for place in zip(table["_partition"].to_pylist(), table["_offset"].to_pylist(), strict=True) if table is not None else ():
            self.processed[place] += 1

    def finish(self):
        self.join()
        self.clock.advance(timedelta(seconds=3))
        for _ in range(40):
            for member in self.live:
                self.read(member)
        loads = [len(member.assignment) for member in self.live]
        assert max(loads) - min(loads) <= 1
        ends = [partition["end"] for partition in self.log.describe("story")["partitions"]]
        assert sum(loads) == len(ends)
        assert {(index, offset) for index, end in enumerate(ends) for offset in range(end)} == set(self.processed)


@pytest.mark.parametrize("seed", seeds(5))
def test_whatever_happens_no_partition_has_two_readers_and_no_record_is_left_out(seed, log, open_log, clock):
    story = Story(seed, log, open_log, clock)
    for _ in range(120):
        story.step()
    story.finish()
