"""The embedded log against a real Kafka broker: same run, same records, pair by pair.

What is compared is each at its fastest. Kafka acknowledges acks=all when the records are in its page cache, Headrace when they are
on disk; Kafka's timed appends are not idempotent, Headrace's always are.

usage: python bench/log_vs_kafka.py [--quick]
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _harness import Measure, Worker, at_least, at_most, finish, interleave, machine, memory_megabytes, options, process_cpu_seconds
from _headrace_side import HeadraceSide
from _kafka_side import KafkaSide
from _percentiles import percentile
from _records import Contents, Records, contents

from headrace.ops.servers.kafka import KafkaServer


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int
    pairs: int
    single_seconds: float
    trip_rate: int
    trip_pairs: int
    trip_seconds: int


FULL = Size(records=1_000_000, pairs=5, single_seconds=2, trip_rate=200, trip_pairs=16, trip_seconds=4)
QUICK = Size(records=200_000, pairs=3, single_seconds=0.5, trip_rate=200, trip_pairs=4, trip_seconds=2)


@dataclass
class Side:
    """One of the two, with a worker for most things, a second one to tail, and the pid of its server if it has one."""

    name: str
    main: Worker
    second: Worker
    server: int | None = None


class Comparison:
    """Runs each measure on both sides in turn, and remembers whether every answer was right."""

    def __init__(self, ours: Side, peer: Side, size: Size) -> None:
        self.ours, self.peer, self.size = ours, peer, size
        self.correct = True
        self._topics = itertools.count()
        self._kafka_append = "append"

    def same_records(self, partitions: int, *, keyed: bool) -> None:
        """What was appended comes back: every record once, in order within its partition, keys where Kafka puts them."""
        records = Records(self.size.records // 4, keyed)
        expected = contents(records.values(), np.zeros(records.count, np.int32)).total
        found: list[Contents] = []
        for side in (self.peer, self.ours):
            topic = self._create(side, partitions)
            side.main.call("append_in_order", topic, records)
            found.append(side.main.call("contents", topic, partitions, records.count).value)
            side.main.call("delete", topic)
        same = all(one.total == expected and one.ordered for one in found) and (not keyed or found[0].partitions == found[1].partitions)
        self._claim(same, f"{partitions} partition(s), {'keyed' if keyed else 'no keys'}: the same records come back, in order")

    def choose_kafka_append(self) -> None:
        """Kafka's client can append record by record or by lists: take what is faster here."""
        best: dict[str, float] = {}
        for method in ("append", "append_batches", "append", "append_batches"):
            topic = self._create(self.peer, 1)
            seconds = self.peer.main.call(method, topic, Records(self.size.records, keyed=False), "all").value
            best[method] = min(seconds, best.get(method, seconds))
            self.peer.main.call("delete", topic)
        self._kafka_append = min(best, key=lambda method: best[method])
        rates = ", ".join(f"{method} {self.size.records / seconds:,.0f}/s" for method, seconds in best.items())
        print(f"Kafka's client: {rates}; used: {self._kafka_append}", flush=True)

    def append(self, name: str, method: str, records: Records, partitions: int, acks: str) -> Measure:
        measure = Measure(name, "records/s")

        def once(side: Side, results: list[float]) -> None:
            topic = self._create(side, partitions)
            how = self._kafka_append if side is self.peer and method == "append" and not records.keyed else method
            seconds = self._observed(side, measure, how, topic, records, acks)
            if side.main.call("count", topic, partitions).value != records.count:
                self._claim(False, f"{name}: {side.name} did not keep every record")
            results.append(records.count / seconds)
            side.main.call("delete", topic)

        return self._pairs(measure, once)

    def read(self, name: str, partitions: int, method: str = "read") -> Measure:
        measure = Measure(name, "records/s")
        records, sums = Records(self.size.records, keyed=False), set()
        topics = {side.name: self._create(side, partitions) for side in (self.peer, self.ours)}
        for side in (self.peer, self.ours):
            side.main.call("append", topics[side.name], records, "1")

        def once(side: Side, results: list[float]) -> None:
            how = method if side is self.ours else "read"
            seconds, total = self._observed(side, measure, how, topics[side.name], partitions, records.count)
            sums.add(total)
            results.append(records.count / seconds)

        self._pairs(measure, once)
        self._claim(len(sums) == 1, f"{name}: every reading had the same checksum")
        for side in (self.peer, self.ours):
            side.main.call("delete", topics[side.name])
        return measure

    def single_sends(self, name: str) -> Measure:
        measure = Measure(name, "sends/s")

        def once(side: Side, results: list[float]) -> None:
            topic = self._create(side, 1)
            results.append(self._observed(side, measure, "send_one_by_one", topic, self.size.single_seconds))
            side.main.call("delete", topic)

        return self._pairs(measure, once)

    def round_trip(self, acks: str) -> tuple[Measure, Measure]:
        """Median and 99th percentile of send to seen in another process; the first second of each run is not counted.

        With acks=all a record of ours is on the disk before anybody sees it; Kafka's are in the page cache, as ours are with acks=1.
        """
        rate, count = self.size.trip_rate, self.size.trip_rate * (self.size.trip_seconds + 1)
        ours: list[list[float]] = []
        peer: list[list[float]] = []

        def once(side: Side, results: list[list[float]]) -> None:
            topic = self._create(side, 1)
            os.sync()  # as in `_observed`; a disk that is busy with what was deleted delays the next process
            side.second.call("open_tail", topic)
            side.second.begin("tail", count)
            side.main.call("send_at_rate", topic, rate, count, acks)
            results.append(side.second.end().value[rate:])
            side.main.call("delete", topic)

        interleave(self.size.trip_pairs, lambda: once(self.ours, ours), lambda: once(self.peer, peer))
        middle, tail = (percentile(f"round trip p{share}, acks={acks}", share / 100, ours, peer) for share in (50, 99))
        print(middle.show(), tail.show(), sep="\n", flush=True)
        return middle, tail

    def _pairs(self, measure: Measure, once: Callable[[Side, list[float]], None]) -> Measure:
        once(self.peer, [])
        once(self.ours, [])
        measure.notes.clear()
        interleave(self.size.pairs, lambda: once(self.ours, measure.ours), lambda: once(self.peer, measure.peer))
        print(measure.show(), flush=True)
        return measure

    def _observed(self, side: Side, measure: Measure, method: str, *arguments: Any) -> Any:
        os.sync()  # what earlier runs left to be written must not be paid by this one
        server_before = process_cpu_seconds(side.server) if side.server else 0.0
        reply = side.main.call(method, *arguments)
        cpu, memory = reply.cpu_seconds, reply.peak_megabytes
        if side.server:
            cpu += process_cpu_seconds(side.server) - server_before
            memory += memory_megabytes(side.server)
        measure.note_most(f"{side.name}_cpu_seconds", cpu)
        measure.note_most(f"{side.name}_peak_megabytes", memory)
        return reply.value

    def _create(self, side: Side, partitions: int) -> str:
        topic = f"bench-{next(self._topics)}"
        side.main.call("create", topic, partitions)
        return topic

    def _claim(self, holds: bool, what: str) -> None:
        print(f"{'ok   ' if holds else 'WRONG'} {what}", flush=True)
        self.correct = self.correct and holds


def main() -> None:
    size = QUICK if options(__doc__ or "").quick else FULL
    state = machine()
    print(f"machine: {state}; {size}")
    with KafkaServer(heap="1g") as broker, tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        peer = Side("kafka", Worker(KafkaSide, broker.bootstrap), Worker(KafkaSide, broker.bootstrap), broker.pid)
        ours = Side("headrace", Worker(HeadraceSide, Path(directory)), Worker(HeadraceSide, Path(directory)))
        comparison = Comparison(ours, peer, size)
        targets, figures = measured(comparison)
        for side in (ours, peer):
            side.main.close()
            side.second.close()
    finish("log_vs_kafka", correct=comparison.correct, targets=targets, figures=figures, machine={**state, "load_after": machine()["load"]})


def measured(comparison: Comparison) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    """Every figure, those with a target first."""
    for partitions, keyed in ((1, False), (8, False), (8, True)):
        comparison.same_records(partitions, keyed=keyed)
    comparison.choose_kafka_append()
    plain, keyed_records = (Records(comparison.size.records, keyed) for keyed in (False, True))
    print(f"{'':<52} {'headrace':>14} {'kafka':>14}")
    fast: list[Measure] = []
    for acks, partitions in itertools.product(("all", "1"), (1, 8)):
        title = f"append, acks={acks}, {partitions} partition{'s' if partitions > 1 else ''}, against Kafka"
        fast.append(comparison.append(title, "append", plain, partitions, acks))
    fast.append(comparison.append("append, acks=all, 8 partitions by key, against Kafka", "append", keyed_records, 8, "all"))
    reads = [comparison.read("read, 1 partition, against Kafka", 1), comparison.read("read, 8 partitions, against Kafka", 8)]
    middles, tails = zip(*(comparison.round_trip(acks) for acks in ("1", "all")), strict=True)
    few = Records(comparison.size.records // 4, keyed=False)
    others = [
        *middles,
        comparison.append("append record by record, acks=all, against Kafka", "append_each", few, 1, "all"),
        comparison.append("append record by record, acks=1, against Kafka", "append_each", few, 1, "1"),
        comparison.single_sends("single sends, each acknowledged, acks=all, against Kafka"),
        comparison.read("read in one call, 1 partition, against Kafka", 1, "read_whole"),
    ]
    targets = {measure.name: at_least(measure, 3) for measure in fast}
    targets |= {measure.name: at_least(measure, 10) for measure in reads}
    # Only with acks=1 do both promise the same; the other one is reported next to it.
    targets[tails[0].name] = at_most(tails[0], 1)
    return targets, {measure.name: measure.figures() for measure in (*fast, *reads, *tails, *others)}


if __name__ == "__main__":
    main()
