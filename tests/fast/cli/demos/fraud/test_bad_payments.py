"""Bad payments are dead letters with the reason, and the job goes on with the others."""

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from tests.support.fraud import PROFILE, fraud_app, payment

SIX = [payment(second) for second in range(10, 16)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"amount": -1.0}, "the amount is no number above zero"),
        ({"amount": 0.0}, "the amount is no number above zero"),
        ({"amount": None}, "the amount is no number above zero"),
        ({"amount": float("nan")}, "the amount is no number above zero"),
        ({"amount": float("inf")}, "the amount is no number above zero"),
        ({"lat": None}, "the payment has no place"),
        ({"lon": None}, "the payment has no place"),
        ({"card": None}, "the payment has no card"),
        ({"paid_at": None}, "no event time in paid_at"),
        ({"card": "c2"}, "the card is not known"),
    ],
)
def test_a_payment_that_cannot_be_judged_is_a_dead_letter_and_the_others_are(tmp_path: Path, bad: dict[str, Any], reason: str) -> None:
    with hr.TestDriver(fraud_app(tmp_path)) as driver:
        driver.send("cards", [PROFILE])
        driver.send("payments", [payment(0, **bad), *SIX])
        driver.end()
        assert [letter["reason"] for letter in driver.dead_letters("payments")] == [reason]
        assert [row["rule"] for row in driver.rows("alerts")] == ["burst"]


def test_a_latitude_beyond_the_pole_is_a_dead_letter_of_the_rules_that_ask_for_it(tmp_path: Path) -> None:
    with hr.TestDriver(fraud_app(tmp_path)) as driver:
        driver.send("cards", [PROFILE])
        driver.send("payments", [payment(0, lat=91.0), *SIX])
        driver.end()
        reasons = {letter["reason"].split(" in ")[0] for letter in driver.dead_letters("payments")}
        assert reasons == {"a latitude that is not from -90 to 90"}
        assert "burst" in [row["rule"] for row in driver.rows("alerts")]


def test_a_payment_that_the_model_raises_for_is_a_dead_letter_and_the_others_are_scored(tmp_path: Path) -> None:
    def model(table: Any) -> list[float]:
        if 7.0 in table.column("ratio").to_pylist():
            raise ValueError("seven is not a number of mine")
        return [0.95] * table.num_rows

    with hr.TestDriver(fraud_app(tmp_path, model=model)) as driver:
        driver.send("cards", [PROFILE])
        driver.send("payments", [payment(0, 350.0), payment(200, 60.0), payment(400, 70.0)])
        driver.end()
        (letter,) = driver.dead_letters("payments")
        assert "seven is not a number of mine" in letter["reason"]
        assert [(row["rule"], row["total"]) for row in driver.rows("alerts")] == [("score", 60.0), ("score", 70.0)]
