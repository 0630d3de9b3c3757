"""The payment gateway: a process that writes payments to the log at a steady rate, and the truth about planted fraud with them.

It ends when its standard input does, so that it never outlives the process that started it.
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.history import History
from headrace.cli.demos.fraud.payments import CYCLE, Payments, PlantedCase
from headrace.cli.demos.fraud.rules import CARD_COLUMNS, CARDS, PAYMENT_COLUMNS, PAYMENTS
from headrace.core.columns.schema import schema
from headrace.log import Log
from headrace.log.producer import Producer

PLANTED = "planted"
PLANTED_COLUMNS = "rule string, card string, payments array<string>, ended_at timestamp"
FEWEST_CARDS = 2_400
_TICK = 0.02


def create(log: Log, partitions: int = 2) -> None:
    """The topics of payments, card profiles and the truth."""
    log.create_topic(PAYMENTS, partitions=partitions, schema=PAYMENT_COLUMNS, key="card", time="paid_at", exist_ok=True)
    log.create_topic(CARDS, schema=CARD_COLUMNS, key="card", exist_ok=True)
    log.create_topic(PLANTED, schema=PLANTED_COLUMNS, time="ended_at", exist_ok=True)


def cards_for(rate: float, seed: int) -> Cards:
    """As many cards as make a rate, if each pays once a cycle."""
    return Cards(max(FEWEST_CARDS, int(rate * CYCLE)), seed)


def publish(log: Log, cards: Cards, made: History) -> None:
    """Write the profiles of cards, a stretch of payments, and the truth about it."""
    create(log)
    with log.producer(acks="all") as producer:
        producer.send_table(CARDS, cards.profiles())
        producer.send_table(PAYMENTS, made.payments)
        tell(producer, made.cases)


def tell(producer: Producer, cases: Sequence[PlantedCase]) -> None:
    """Write the truth about cases that are complete."""
    if cases:
        columns = schema(PLANTED_COLUMNS)
        rows = [(case.rule, case.card, case.payments, case.ended_at) for case in cases]
        arrays = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), columns.types, strict=True)]
        producer.send_table(PLANTED, pa.table(arrays, schema=columns))


def main(home: str, rate: str, seed: str) -> None:
    """Write payments at a rate a second until standard input ends."""
    wanted = float(rate)
    cards = cards_for(wanted, int(seed))
    with Log(Path(home) / "log") as log, log.producer(acks="1") as producer:
        create(log)
        producer.send_table(CARDS, cards.profiles())
        payments, told = Payments(cards, int(seed), begin=time.time_ns() // 1_000), 0
        started, sent = time.monotonic(), 0
        while not select.select([sys.stdin], [], [], _TICK)[0]:
            due = int((time.monotonic() - started) * wanted) - sent
            if due > 0:
                producer.send_table(PAYMENTS, payments.until(time.time_ns() // 1_000, due))
                tell(producer, payments.cases[told:])
                sent, told = sent + due, len(payments.cases)


if __name__ == "__main__":
    main(*sys.argv[1:])
