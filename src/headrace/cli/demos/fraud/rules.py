"""The app: five rules over card payments, one declaration each, and what becomes of their alerts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.api.stream import Stream
from headrace.api.windows import bounded, sliding
from headrace.app import App
from headrace.cli.demos.fraud.places import RISKS
from headrace.connectors.kafka.declaration import kafka
from headrace.log.target import LogTopic

BURST, SPENDING, FLIGHT, SPREE, SCORE = "burst", "spending", "flight", "spree", "score"
RULES = {
    BURST: "more than 5 payments in 1 minute",
    SPENDING: "more than $5,000 in 10 minutes",
    FLIGHT: "faster than 500 km/h between two payments",
    SPREE: "three or more payments over $500 from two countries in 5 minutes",
    SCORE: "the model gives it a score above 0.9",
}
PAYMENTS, CARDS, ALERTS, SUSPICIOUS = "payments", "cards", "alerts", "suspicious_cards"
PAYMENT_COLUMNS = (
    "id string, card string, merchant string, category string, amount double, country string, lat double, lon double, paid_at timestamp"
)
CARD_COLUMNS = "card string, home_country string, home_lat double, home_lon double, typical_amount double"
MODEL = Path(__file__).with_name("model.onnx")
FEATURES = ("ratio", "distance_km", "risk")
# Longer than any rule waits: when all is silent, event time moves on by that much, and by then no payment is late for it.
_SILENCE = "1 hour"
# At 500 km/h every place is reached by then: half around the earth it takes 40 hours.
_FLIGHTS = "41 hours"
_MEASURES = {"payment": "last(id)", "paid_at": "last(paid_at)", "payments": "count(*)", "total": "sum(amount)"}
_COLUMNS = "card, payment, paid_at, payments, total, evidence"


@dataclass(frozen=True)
class Options:
    """Where payments come from, how much out of order they may be, and what scores them."""

    kafka: str | None = None
    """The servers of Kafka; without them everything is in the log."""
    prefix: str = ""
    """What the names of topics in Kafka begin with."""
    disorder: str = "1 second"
    model: str | Path | Callable[[pa.Table], Any] = MODEL
    partitions: int = 2


def declare(app: App, options: Options | None = None) -> None:
    """Declare the streams, the rules, the alert topic and the view of suspicious cards.

    A match has its evidence; for the rules without a pattern, `place` goes along with each payment.
    """
    options = options or Options()
    payments = checked(_payments(app, options).with_place("place"))
    rules = {
        BURST: payments.match(by="card", pattern="A{6}", within="1 minute", measures=_MEASURES),
        SPENDING: payments.window(sliding("10 minutes"), by="card")
        .agg(payment="last(id)", payments="count(*)", total="sum(amount)", evidence=f"collect_list({_evidence('A')})")
        .where("total > 5000")
        .dedup("card", ttl="10 minutes")
        .with_columns(paid_at="window_end"),
        FLIGHT: payments.with_previous("amount", "lat", "lon", "paid_at", "place", by="card", ttl=_FLIGHTS)
        .where("speed_kmh(previous_lat, previous_lon, previous_paid_at, lat, lon, paid_at) > 500")
        .with_columns(
            payment="id",
            payments="cast(2 as bigint)",
            total="previous_amount + amount",
            evidence=f"array({_evidence('A', 'previous_place')}, {_evidence('B')})",
        ),
        SPREE: payments.match(
            by="card",
            pattern="A{3,}?",
            define={"A": "amount > 500"},
            where="count(distinct A.country) >= 2",
            within="5 minutes",
            measures=_MEASURES,
        ),
        SCORE: scored(payments, _cards(app, options), options).where("score > 0.9").with_columns(evidence=f"array({_evidence('A')})"),
    }
    alerts = _alerts(rules)
    app.sink(
        alerts,
        LogTopic(ALERTS) if options.kafka is None else kafka(f"{options.prefix}{ALERTS}", servers=options.kafka, key="card"),
        name=ALERTS,
    )
    suspicious = alerts.group("card", ttl="90 days").agg(alerts="count(*)", last_rule="max_by(rule, paid_at)", last_at="max(paid_at)")
    app.view(SUSPICIOUS, suspicious)


def checked(payments: Stream) -> Stream:
    """Payments that can be judged; the others are dead letters with the reason."""
    return payments.with_columns(
        card="coalesce(card, raise_error('the payment has no card'))",
        # To Spark NaN is above every limit.
        amount="case when amount > 0 and amount < double('inf') then amount else raise_error('the amount is no number above zero') end",
        lat="coalesce(lat, raise_error('the payment has no place'))",
        lon="coalesce(lon, raise_error('the payment has no place'))",
    )


def _evidence(variable: str, place: str = "place") -> str:
    """A payment as the evidence of a match has it."""
    return f"named_struct('variable', '{variable}', 'partition', {place}.partition, 'offset', {place}.offset)"


def _payments(app: App, options: Options) -> Stream:
    timed: dict[str, Any] = {"key": "card", "time": "paid_at", "watermark": bounded(options.disorder, idle=_SILENCE)}
    if options.kafka is not None:
        return app.stream(PAYMENTS, PAYMENT_COLUMNS, **timed, source=kafka(f"{options.prefix}{PAYMENTS}", servers=options.kafka))
    return app.stream(PAYMENTS, PAYMENT_COLUMNS, **timed, partitions=options.partitions)


def _cards(app: App, options: Options) -> Stream:
    if options.kafka is not None:
        return app.table(CARDS, CARD_COLUMNS, key="card", source=kafka(f"{options.prefix}{CARDS}", servers=options.kafka))
    return app.stream(CARDS, CARD_COLUMNS, key="card").to_table("card")


def scored(payments: Stream, cards: Stream, options: Options) -> Stream:
    """Payments with the profile of their card and the score of the model."""
    risks = " ".join(f"when '{category}' then {risk}D" for category, risk in RISKS.items())
    known = payments.join(cards, on="card", how="left").with_columns(
        typical_amount="coalesce(typical_amount, raise_error('the card is not known'))"
    )
    features = known.with_columns(
        ratio="amount / typical_amount",
        distance_km="haversine_km(lat, lon, home_lat, home_lon)",
        risk=f"case category {risks} else 0.5D end",
        payment="id",
        payments="cast(1 as bigint)",
        total="amount",
    )
    return features.score(options.model, inputs=FEATURES, output="score")


def _alerts(rules: dict[str, Stream]) -> Stream:
    """The alerts of all rules, each with how long after its last payment it was made."""
    named = [
        rule.select(
            f"{_COLUMNS}, '{name}' as rule, '{RULES[name]}' as reason, {'score' if name == SCORE else 'cast(null as double) as score'}"
        )
        for name, rule in rules.items()
    ]
    return named[0].union(*named[1:]).score(_latency, inputs="paid_at", output="latency_ms")


def _latency(table: pa.Table) -> np.ndarray:
    """Milliseconds from the payment until now."""
    paid_at = table.column("paid_at").cast(pa.int64()).to_numpy()
    return np.asarray((time.time_ns() // 1000 - paid_at) / 1000)
