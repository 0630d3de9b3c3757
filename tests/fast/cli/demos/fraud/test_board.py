"""The board of the fraud demo fits its width, and shows what was found next to what was planted."""

import io
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from rich.console import Console

from headrace.cli.demos.board import WIDTH
from headrace.cli.demos.fraud.board import board
from headrace.cli.demos.fraud.figures import FraudObserver
from headrace.jobs.facts.progress import Progress

PROGRESS = Progress(7, datetime(2026, 1, 1, 12, tzinfo=UTC), 0, 0, 0.0, 0.2)


def alert(rule: str, card: str, latency: float = 80.0) -> dict[str, object]:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    return {"rule": rule, "card": card, "paid_at": at, "payments": 6, "total": 12345.5, "score": 0.95, "latency_ms": latency}


def observed(alerts: list[dict[str, object]], planted: list[tuple[str, str]]) -> FraudObserver:
    observer = FraudObserver()
    truth = pa.table({"rule": [rule for rule, _ in planted], "card": [card for _, card in planted]})
    observer.learn(pa.Table.from_pylist(alerts) if alerts else None, truth)
    return observer


def drawn(observer: FraudObserver, progress: Progress | None = PROGRESS) -> str:
    console = Console(width=WIDTH, file=io.StringIO(), record=True)
    console.print(board(observer.look(9.0, 2_000, 1_900, progress), 200))
    return console.export_text()


def test_alerts_are_counted_next_to_the_planted_cases_that_they_find():
    observer = observed([alert("burst", "c1"), alert("burst", "c2"), alert("score", "c3")], [("burst", "c1"), ("score", "c4")])
    figures = {one.rule: (one.alerts, one.planted, one.found) for one in observer.look(1, 10, 10).rules}
    assert (figures["burst"], figures["score"], figures["flight"]) == ((2, 1, 1), (1, 1, 0), (0, 0, 0))


def test_latencies_are_those_of_the_alerts():
    figures = observed([alert("burst", f"c{n}", float(n)) for n in range(101)], []).look(1, 10, 10)
    assert (figures.latency_p50, figures.latency_p99) == pytest.approx((50, 99))


@pytest.mark.parametrize(("alerts", "progress"), [([], None), ([], PROGRESS), ([alert("spree", f"c{n}") for n in range(20)], PROGRESS)])
def test_no_line_is_wider_than_the_board_and_its_height_stays(alerts, progress):
    lines = drawn(observed(alerts, []), progress).splitlines()
    assert {len(line) for line in lines} == {WIDTH}
    assert len(lines) == len(drawn(observed([], []), None).splitlines())


def test_it_says_what_an_alert_is_about():
    shown = " ".join(drawn(observed([alert("spree", "card-7", 81.4)], [])).split())
    for text in ("card-7", "spree", "$12,345.50", "0.950", "81 ms", "1,900 payments", "epochs of 0.20 s"):
        assert text in shown
