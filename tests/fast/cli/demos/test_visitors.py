"""Visitors behave as a shop's do: a few pages get most views, and some views are told late."""

import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta

import pytest

from headrace.cli.demos import visitors
from headrace.log import Log
from tests.support.processes import PATIENCE


def test_views_follow_zipfs_law():
    urls = visitors.Visitors(1).views(50_000, 1_767_225_600.0)["url"].to_pylist()
    ranked = Counter(urls).most_common()
    assert ranked[0][0] == "/"
    assert 0.15 < ranked[0][1] / len(urls) < 0.35
    assert len(ranked) == len(visitors.urls()) == 200
    assert ranked[0][1] > 1.5 * ranked[1][1] > 1.5 * ranked[20][1]


def test_views_are_up_to_five_seconds_late_but_for_a_few_and_never_early():
    now = 1_767_225_600.0
    moments = visitors.Visitors(1).views(200_000, now)["viewed_at"].to_pylist()
    ages = [now - moment.timestamp() for moment in moments if moment is not None]
    assert min(ages) >= 0
    few = sorted(age for age in ages if age > visitors.DISORDER_SECONDS + 0.001)
    assert 20 < len(few) < 100
    assert few[0] > 70
    assert 0 < moments.count(None) < 20


def test_the_process_writes_at_its_rate_and_ends_with_its_input(tmp_path):
    log = Log(tmp_path / "log")
    visitors.create(log)
    consumer, started, seen = log.consumer(visitors.TOPIC), time.monotonic(), 0
    process = subprocess.Popen([sys.executable, "-m", visitors.__name__, str(tmp_path), "500", "1"], stdin=subprocess.PIPE)
    try:
        while seen < 500:
            table = consumer.poll(timeout=timedelta(seconds=PATIENCE))
            assert table is not None
            seen += table.num_rows
        assert seen <= 500 * (time.monotonic() - started) + 1
    finally:
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("times", [1, 2])
def test_the_topic_is_created_once(tmp_path, times):
    log = Log(tmp_path)
    for _ in range(times):
        assert visitors.create(log).key == ("url",)
