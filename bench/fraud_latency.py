"""The fraud app under load: from a payment that is sent until its alert is readable, with all five rules; plain Spark with one of them.

The job is `headrace run` with one shard, in processes of its own on the same cores as the sender. `FRAUD_DISORDER` is 0: the sender writes
in the order of time, so an alert waits for the next payment of each partition and no longer. Sending while the job warms up does not count.
Plain Spark counts payments by micro-batch over the same kind of topic, and writes every count above five; its delay is that of a burst's
sixth payment.

usage: python bench/fraud_latency.py [--quick]
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _fraud_jobs import COUNTED, KafkaWay, LogWay, epoch_phases, fraud_job, plain_spark, watched, watched_kafka
from _gateway import Alerts, Sender, Way
from _harness import finish, machine, options

from headrace.cli.demos.fraud.rules import ALERTS, BURST
from headrace.log import Log
from headrace.ops.servers.kafka import KafkaServer

P50_TARGET, LOG_TARGET, KAFKA_TARGET = 100.0, 300.0, 500.0
# A case is judged if its last payment was sent so long before the end: the watermark needs later payments.
_MARGIN = 2.0
_PATIENCE = 600.0


@dataclass(frozen=True)
class Size:
    """Seconds at each rate that count, after `warm` epochs and `warm_seconds`; `everything`: Kafka and the highest rate, too."""

    seconds: float
    peer_seconds: float
    """The same for plain Spark."""
    warm: int
    warm_seconds: float
    everything: bool
    rates: tuple[int, ...] = (200, 1_000)


FULL = Size(seconds=300, peer_seconds=60, warm=60, warm_seconds=60, everything=True)
# A burst takes some twenty seconds: a shorter wait would find none at the second rate.
QUICK = Size(seconds=8, peer_seconds=8, warm=10, warm_seconds=15, everything=False)


@dataclass(frozen=True)
class Measured:
    """Milliseconds from a payment to its alert at one rate, and whether exactly what was planted was alerted."""

    rate: int
    waits: np.ndarray
    bursts: np.ndarray
    missing: int
    twice: int

    def figures(self) -> dict[str, float]:
        found = {"rate": self.rate, "alerts": len(self.waits), "missing": self.missing, "twice": self.twice}
        for name, values in (("", self.waits), ("burst_", self.bursts)):
            if len(values):
                found |= {f"{name}{p}_milliseconds": round(float(np.percentile(values, int(p[1:]))), 1) for p in ("p50", "p99")}
        return found

    @property
    def p99(self) -> float:
        return float(np.percentile(self.waits, 99)) if len(self.waits) else float("inf")


class Bench:
    """One job after the other, and what is said of each."""

    def __init__(self, size: Size, directory: Path) -> None:
        self._size, self._directory = size, directory
        self._seed = 0
        self.correct = True
        self.figures: dict[str, Any] = {}
        self.targets: dict[str, dict[str, float]] = {}

    def headrace(self, name: str, kafka: str | None = None) -> None:
        """The app at each rate, in one job; then, in the full form, at higher ones until the target is missed."""
        home = self._home(name)
        with Log(home / "log") as log:
            way: Way = LogWay(log) if kafka is None else KafkaWay(kafka)
            alerts = Alerts()
            with fraud_job(home, kafka) as epochs, watched_kafka(kafka, alerts.take) if kafka else watched(home, ALERTS, alerts.take):
                for rate in self._size.rates:
                    measured = self._ours(way, alerts, rate, _warm(epochs, self._size.warm), self._size.seconds)
                    self._told(f"{name} {rate}/s", measured, kafka is not None)
                self.figures[f"{name} phases"] = epoch_phases(home)
                if self._size.everything and kafka is None:
                    self._highest(name, way, alerts, epochs)

    def spark(self) -> None:
        """Plain Spark at each rate."""
        home = self._home("spark")
        with Log(home / "log") as log:
            way, seen = LogWay(log), dict[str, float]()
            with plain_spark(home) as written, watched(home, COUNTED, lambda row, now: seen.setdefault(row["card"], now) and None):
                for rate in self._size.rates:
                    sender = self._sender(way, rate)
                    begin, end = _sent(sender, lambda: written() > 0, self._size.warm_seconds, self._size.peer_seconds)
                    cases = [case for case in sender.cases(begin, end - _MARGIN) if case.rule == BURST]
                    _wait(lambda cases=cases: all(case.card in seen for case in cases), 30.0)
                    waits = np.array([(seen[case.card] - sender.sixth(case)) * 1_000 for case in cases if case.card in seen])
                    missing = sum(case.card not in seen for case in cases)
                    self._told(f"spark {rate}/s", Measured(rate, np.array([]), waits, missing, 0), None)

    def _ours(self, way: Way, alerts: Alerts, rate: int, warm: Callable[[], bool], seconds: float) -> Measured:
        sender = self._sender(way, rate)
        begin, end = _sent(sender, warm, self._size.warm_seconds, seconds)
        cases = [(case.rule, case.card) for case in sender.cases(begin, end - _MARGIN)]
        _wait(lambda: all(case in alerts.cards for case in cases), 30.0)
        twice = sum(count > 1 for count in alerts.cards.values())
        waits, bursts = (alerts.waits(sender.sent, begin, end - _MARGIN, rule) for rule in (None, BURST))
        return Measured(rate, waits, bursts, sum(case not in alerts.cards for case in cases), twice)

    def _highest(self, name: str, way: Way, alerts: Alerts, epochs: Callable[[], int]) -> None:
        rate, best = 2 * self._size.rates[-1], 0
        while rate <= 64_000:
            measured = self._ours(way, alerts, rate, _warm(epochs, 20), 30.0)
            print(f"{name} {rate}/s: {measured.figures()}", flush=True)
            if measured.p99 > KAFKA_TARGET or measured.missing:
                break
            rate, best = 2 * rate, rate
        self.figures[f"{name} highest rate with p99 at most {KAFKA_TARGET:.0f} ms"] = best or "below the rates above, or one of them"

    def _sender(self, way: Way, rate: int) -> Sender:
        self._seed += 1
        return Sender(way, rate, self._seed)

    def _home(self, name: str) -> Path:
        home = self._directory / name
        home.mkdir()
        return home

    def _told(self, name: str, measured: Measured, kafka: bool | None) -> None:
        shown = measured.figures()
        print(f"{name}: {shown}", flush=True)
        self.figures[name] = shown
        if kafka is not None:
            self.correct = self.correct and not measured.missing and not measured.twice and len(measured.waits) > 0
            self.targets[f"{name} p99"] = {"got": shown.get("p99_milliseconds", -1), "at_most": KAFKA_TARGET if kafka else LOG_TARGET}
            if not kafka:
                self.targets[f"{name} p50"] = {"got": shown.get("p50_milliseconds", -1), "at_most": P50_TARGET}


def _warm(epochs: Callable[[], int], count: int) -> Callable[[], bool]:
    """Whether a job has committed `count` more epochs than when it was first asked."""
    first: list[int] = []

    def warm() -> bool:
        first[:] = first or [epochs()]
        return epochs() >= first[0] + count

    return warm


def _sent(sender: Sender, warm: Callable[[], bool], warm_seconds: float, seconds: float) -> tuple[float, float]:
    """Send until a job is warm and for `warm_seconds` more, and then for the `seconds` that count; returns their beginning and end."""
    begin: list[float] = []
    deadline = time.time() + _PATIENCE

    def going() -> bool:
        if begin:
            return time.time() < begin[0] + seconds
        if warm():
            begin.append(time.time() + warm_seconds)
        elif time.time() > deadline:
            raise TimeoutError("the job did not get warm")
        return True

    sender.run(going)
    return begin[0], time.time()


def _wait(met: Callable[[], bool], seconds: float) -> None:
    deadline = time.time() + seconds
    while not met() and time.time() < deadline:
        time.sleep(0.05)


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def main() -> None:
    size = QUICK if options(__doc__ or "").quick else FULL
    state = machine()
    print(f"machine: {state}; {size}", flush=True)
    with _directory() as directory:
        bench = Bench(size, directory)
        bench.spark()
        bench.headrace("log")
        if size.everything:
            with KafkaServer() as kafka:
                bench.headrace("kafka", kafka.bootstrap)
    load = round(os.getloadavg()[0], 2)
    finish("fraud_latency", correct=bench.correct, targets=bench.targets, figures=bench.figures, machine={**state, "load_after": load})


if __name__ == "__main__":
    main()
