"""The demo's figures are what the log and Spark say, as rates and lags."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from headrace.cli.demos.figures import FigureObserver
from headrace.jobs.facts.progress import Progress

MINUTE = datetime(2026, 1, 1, 12, tzinfo=UTC)


def counts(*rows: tuple[str, datetime, int | None]) -> pa.Table:
    return pa.table({"url": [row[0] for row in rows], "minute": [row[1] for row in rows], "views": [row[2] for row in rows]})


def test_rates_are_those_of_the_last_seconds():
    observer = FigureObserver()
    for second in range(20):
        figures = observer.look(second, written=100 * second, counted=50 * second if second < 10 else 500 + 200 * (second - 10))
    assert figures.rate_in == pytest.approx(100)
    assert figures.rate_out == pytest.approx(200)


def test_the_first_look_has_no_rate():
    assert FigureObserver().look(0, written=10, counted=0).rate_in == 0


def test_lag_is_what_is_not_counted_and_how_long_the_oldest_of_it_waits():
    observer = FigureObserver()
    for second in range(10):
        figures = observer.look(second, written=100 * (second + 1), counted=0)
    assert (figures.lag_rows, figures.lag_seconds) == (1000, 9)
    figures = observer.look(10, written=1100, counted=250)
    assert (figures.lag_rows, figures.lag_seconds) == (850, 8)
    figures = observer.look(11, written=1100, counted=1100)
    assert (figures.lag_rows, figures.lag_seconds) == (0, 0)


def test_the_most_viewed_urls_are_those_of_the_newest_minute():
    observer = FigureObserver()
    observer.learn(counts(("/a", MINUTE, 5), ("/b", MINUTE, 9)))
    observer.learn(counts(("/a", MINUTE, 7), ("/a", MINUTE + timedelta(minutes=1), 2), ("/c", MINUTE + timedelta(minutes=1), 3)))
    figures = observer.look(1, 0, 0)
    assert figures.minute == MINUTE + timedelta(minutes=1)
    assert figures.top == [("/c", 3, 0), ("/a", 2, 7)]
    assert figures.changes == 5
    assert observer.look(1, 0, 0, top=1).top == [("/c", 3, 0)]


def test_old_minutes_are_forgotten():
    observer = FigureObserver()
    for number in range(100):
        observer.learn(counts(("/a", MINUTE + timedelta(minutes=number), 1)))
    assert len(observer._views) == 5


def test_the_jobs_progress_gives_watermark_and_the_time_of_an_epoch():
    progress = Progress(epoch=7, watermark=MINUTE, taken=10, waiting=0, rate=1.0, epoch_seconds=0.412)
    figures = FigureObserver().look(1, 0, 0, progress)
    assert (figures.epoch_seconds, figures.watermark) == (0.412, MINUTE)
    figures = FigureObserver().look(1, 0, 0, None)
    assert (figures.epoch_seconds, figures.watermark) == (None, None)


def test_a_count_that_is_forgotten_is_not_shown():
    observer = FigureObserver()
    observer.learn(counts(("/a", MINUTE, 5), ("/a", MINUTE, None)))
    assert observer.look(1, 0, 0).top == [("/a", 5, 0)]
