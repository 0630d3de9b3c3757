"""The fraud app under test: an app in a folder, payments by hand, and the truth of planted ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.cli.demos.fraud.payments import PlantedCase
from headrace.cli.demos.fraud.rules import Options, declare

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PARIS = {"country": "FR", "lat": 48.8566, "lon": 2.3522}
PROFILE = {"card": "c1", "home_country": "FR", "home_lat": 48.8566, "home_lon": 2.3522, "typical_amount": 50.0}


def fraud_app(home: Path, **options: Any) -> hr.App:
    app = hr.App("fraud", home=home)
    declare(app, Options(**options))
    return app


def payment(second: float, amount: float | None = 10.0, **columns: Any) -> dict[str, Any]:
    """A payment of card c1 in Paris, some seconds after noon."""
    at = NOON + timedelta(seconds=second)
    return {"id": f"p{second:g}", "card": "c1", "merchant": "m", "category": "fuel", "amount": amount, "paid_at": at, **PARIS, **columns}


def planted(cases: Sequence[PlantedCase]) -> Counter[tuple[str, str]]:
    """The rules and cards of cases."""
    return Counter((case.rule, case.card) for case in cases)


def alerted(alerts: Sequence[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
    """The rules and cards of alerts."""
    return Counter((alert["rule"], alert["card"]) for alert in alerts)
