"""What a running job shows of itself."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np

from headrace.jobs.progress import Observer
from headrace.operators.disorder import Lateness
from headrace.operators.hot import HotKey
from headrace.operators.watermark import Progress
from headrace.plan.watermarks import Bounded, LossBudget

RULES = {"readings": LossBudget(0.5, timedelta(minutes=1)), "clicks": Bounded(timedelta(0))}


def test_a_job_says_which_bound_its_loss_budget_has_chosen() -> None:
    rule = RULES["readings"]
    assert isinstance(rule, LossBudget)
    learned = Lateness.of(np.array([9, 9, 4, 7, 1]) * 1_000_000)
    progress = Progress().observe({0: 9_000_000}, 0).learn(rule, {0: learned})
    offset = {
        "epoch": 3, "watermark": 5_000_000, "positions": {"readings": {"0": 5}},
        "progress": {"readings": progress.to_json(), "clicks": Progress().to_json()},
    }  # fmt: skip
    observer = Observer({}, RULES)
    assert observer.bounds == {}
    observer.learn({"durationMs": {}, "sources": [{"startOffset": None, "endOffset": json.dumps(offset)}]})
    assert observer.bounds == {"readings": timedelta(seconds=2)}
    assert str(observer.look()).endswith("watermark 1970-01-01 00:00:05   readings bounded by 2 seconds")


def test_a_job_says_which_key_is_hot_once_it_may_have_met_one() -> None:
    asked = []

    def met() -> list[HotKey]:
        asked.append(observer.epoch)
        return [HotKey("clicks.window", "{}", 0.95, gathers=False), HotKey("clicks.dedup", '{"page":"[b]"}', 0.92, gathers=True)]

    observer = Observer({}, {}, met)
    for epoch in (0, 1, 2, 8, 9, 10):
        offset = {"epoch": epoch, "watermark": 5_000_000, "positions": {}, "progress": {}}
        observer.learn({"durationMs": {}, "sources": [{"startOffset": None, "endOffset": json.dumps(offset)}]})
        progress = observer.look()
        assert len(progress.hot_keys) == (2 if epoch else 0)
    # Reading them costs, so they are read when there can be news.
    assert asked == [1, 9]
    assert str(progress).endswith("""hot key {"page":"[b]"} 92% of clicks.dedup""")
