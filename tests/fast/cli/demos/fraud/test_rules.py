"""All planted fraud is found and nothing else is alerted, and each rule holds at its borders."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.history import history
from headrace.cli.demos.fraud.rules import PAYMENTS, RULES
from tests.support.examples import seeds
from tests.support.fraud import NOON, PROFILE, alerted, fraud_app, payment, planted

DISORDER = 4.0


def test_all_planted_fraud_is_found_and_nothing_else_whatever_the_order_within_the_bound(tmp_path: Path) -> None:
    app = fraud_app(tmp_path, disorder=f"{DISORDER:g} seconds")
    for seed in seeds(4):
        cards = Cards(2_400, seed)
        made = history(cards, seed, begin=NOON, seconds=240, rate=20, per_case=120)
        random = np.random.default_rng(seed)
        times = made.payments["paid_at"].to_numpy().astype("datetime64[us]").astype(np.int64)
        arriving = made.payments.take(np.argsort(times + random.uniform(0, DISORDER * 1e6, len(times)), kind="stable"))
        with hr.TestDriver(app, partitions=2, shards=int(random.integers(1, 4))) as driver:
            driver.send("cards", cards.profiles())
            first = 0
            while first < arriving.num_rows:
                size = int(random.integers(1, 1_500))
                driver.send("payments", arriving.slice(first, size))
                first += size
                if random.random() < 0.3:
                    driver.restart()
            driver.end()
            assert driver.late("payments") == driver.dead_letters("payments") == []
            alerts = driver.rows("alerts")
            assert alerted(alerts) == planted(made.cases)
            assert {case.rule for case in made.cases} == set(RULES)
            counts = {row["card"]: row["alerts"] for row in driver.rows("suspicious_cards")}
            assert counts == Counter(case.card for case in made.cases)


def test_the_evidence_of_an_alert_is_where_its_payments_are(tmp_path: Path) -> None:
    cards = Cards(2_400, 1)
    made = history(cards, 1, begin=NOON, seconds=240, rate=20, per_case=120)
    with hr.TestDriver(fraud_app(tmp_path)) as driver:
        driver.send("cards", cards.profiles())
        driver.send("payments", made.payments)
        driver.end()
        ids = made.payments["id"].to_pylist()
        shown = {(row["rule"], row["card"]): {ids[place["offset"]] for place in row["evidence"]} for row in driver.rows("alerts")}
        # A burst may be known before its last payment, and an everyday payment before it may count.
        assert all(shown[case.rule, case.card] & set(case.payments) for case in made.cases)
        assert all(row["payment"] == ids[row["evidence"][-1]["offset"]] for row in driver.rows("alerts"))
        assert all(len(row["evidence"]) == row["payments"] for row in driver.rows("alerts"))


def rules_of(home: Path, rows: list[dict[str, Any]], **options: Any) -> list[str]:
    with hr.TestDriver(fraud_app(home, **options)) as driver:
        driver.send("cards", [PROFILE])
        driver.send("payments", rows)
        driver.end()
        assert driver.dead_letters(PAYMENTS) == []
        return [row["rule"] for row in driver.rows("alerts")]


SPAIN = {"country": "ES"}


@pytest.mark.parametrize(
    ("rows", "rules"),
    [
        pytest.param([payment(n) for n in (0, 5, 10, 15, 20)], [], id="five payments in a minute"),
        pytest.param([payment(n) for n in (0, 5, 10, 15, 20, 60)], ["burst"], id="six in exactly a minute"),
        pytest.param([payment(n) for n in (0, 5, 10, 15, 20, 60.000001)], [], id="six in a microsecond more"),
        pytest.param([payment(0, 2_500), payment(600, 2_500)], [], id="$5,000"),
        pytest.param([payment(0, 2_500), payment(600, 2_500.01)], ["spending"], id="a cent more in exactly ten minutes"),
        pytest.param([payment(0, 2_500), payment(600.000001, 2_500.01)], [], id="a cent more in a microsecond more"),
        pytest.param([payment(0, 2_000, id=f"p{n}") for n in range(4)], ["spending"], id="four of $2,000 at one moment"),
        pytest.param([payment(0, 501), payment(150, 501, **SPAIN), payment(300, 501)], ["spree"], id="three over $500 in five minutes"),
        pytest.param([payment(0, 501), payment(150, 501, **SPAIN), payment(300.000001, 501)], [], id="three in a microsecond more"),
        pytest.param([payment(0, 501), payment(150, 501), payment(300, 501)], [], id="three in one country"),
        pytest.param([payment(0, 500), payment(150, 501, **SPAIN), payment(300, 501)], [], id="one of them of $500"),
        pytest.param([payment(0, 501), payment(300, 501, **SPAIN)], [], id="two"),
    ],
)
def test_a_rule_holds_at_its_border(tmp_path: Path, rows: list[dict[str, Any]], rules: list[str]) -> None:
    assert rules_of(tmp_path, rows) == rules


@pytest.mark.parametrize(("kmh", "rules"), [(499.9, []), (500.1, ["flight"])])
def test_a_card_may_move_at_500_kilometers_an_hour(tmp_path: Path, kmh: float, rules: list[str]) -> None:
    # A degree along the equator is 111.195 km.
    rows = [payment(0, lat=0.0, lon=0.0), payment(111.19508 / kmh * 3_600, lat=0.0, lon=1.0)]
    assert rules_of(tmp_path, rows) == rules


@pytest.mark.parametrize(("hours", "rules"), [(39.9, ["flight"]), (40.1, [])])
def test_a_card_reaches_the_other_side_of_the_earth_in_40_hours(tmp_path: Path, hours: float, rules: list[str]) -> None:
    assert rules_of(tmp_path, [payment(0, lat=0.0, lon=0.0), payment(hours * 3_600, lat=0.0, lon=180.0)]) == rules


@pytest.mark.parametrize(("score", "rules"), [(0.9, []), (0.9000001, ["score"])])
def test_a_score_has_to_be_above_nine_tenths(tmp_path: Path, score: float, rules: list[str]) -> None:
    assert rules_of(tmp_path, [payment(0)], model=lambda table: [score] * table.num_rows) == rules


def test_a_second_alert_for_the_same_spending_waits_for_ten_minutes(tmp_path: Path) -> None:
    rows = [payment(minute * 60, 2_600) for minute in (0, 1, 2, 3, 12, 13)]
    with hr.TestDriver(fraud_app(tmp_path)) as driver:
        driver.send("cards", [PROFILE])
        driver.send("payments", rows)
        driver.end()
        assert [row["paid_at"] - NOON for row in driver.rows("alerts")] == [timedelta(minutes=1), timedelta(minutes=12)]
