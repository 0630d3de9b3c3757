"""The board fits its width and says what is to be known, with and without counts."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from headrace.cli.demos.board import WIDTH, bar, board
from headrace.cli.demos.figures import Figures

EMPTY = Figures(
    seconds=3, written=6000, counted=0, changes=0, rate_in=2000, rate_out=0, lag_rows=6000, lag_seconds=3, epoch_seconds=None,
    watermark=None, minute=None,
)  # fmt: skip
FULL = Figures(
    seconds=90, written=180_000_000, counted=179_000_000, changes=9999, rate_in=1_999.6, rate_out=2_012.4, lag_rows=1_000_000,
    lag_seconds=1234.5, epoch_seconds=12.34, watermark=datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC),
    minute=datetime(2026, 1, 1, 12, tzinfo=UTC),
    top=[(f"/product/{number}", 1_000_000 - number, 0 if number else 5) for number in range(10)],
)  # fmt: skip


def drawn(figures: Figures) -> str:
    console = Console(width=WIDTH, file=io.StringIO(), record=True)
    console.print(board(figures, 2000))
    return console.export_text()


@pytest.mark.parametrize("figures", [EMPTY, FULL])
def test_no_line_is_wider_than_the_board_and_its_height_stays(figures):
    lines = drawn(figures).splitlines()
    assert {len(line) for line in lines} == {WIDTH}
    assert len(lines) == len(drawn(EMPTY).splitlines())


def test_it_says_rates_lag_watermark_and_the_most_viewed():
    shown = " ".join(drawn(FULL).split())
    for text in (
        "2,000/s",
        "2,012/s",
        "1,000,000 rows",
        "1234.5 s",
        "12:00:30",
        "epochs of 12.34 s",
        "views since 12:00",
        "/product/9",
        "999,991",
    ):
        assert text in shown


def test_before_spark_has_started_it_says_so():
    shown = " ".join(drawn(EMPTY).split())
    for text in ("2,000/s", "none yet", "6,000 rows", "Spark is starting"):
        assert text in shown


@pytest.mark.parametrize(("share", "expected"), [(0, ""), (1, "████"), (0.5, "██"), (0.03125, "▏"), (0.375, "█▌")])
def test_a_bar_is_drawn_to_an_eighth(share, expected):
    assert bar(share, 4) == expected
