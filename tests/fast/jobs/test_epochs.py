"""Reads that wait for an epoch, on the files that Spark keeps of a job."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import headrace as hr
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory


def done(app: hr.App, batch: int, epoch: int) -> None:
    """What Spark leaves behind when a batch is done."""
    checkpoint = JobDirectory(app.settings.home, app.name).checkpoint
    for folder, text in (("offsets", f"v1\n{{}}\n{json.dumps(EpochPlan(epoch, {}, {}, {}).to_json())}"), ("commits", "v1\n{}")):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
        fresh = checkpoint / folder / f".{batch}.new"
        fresh.write_text(text)
        fresh.rename(checkpoint / folder / str(batch))


def test_a_read_waits_for_its_epoch_and_gives_up_when_it_does_not_come(tmp_path: Path) -> None:
    app = hr.App("shop", home=tmp_path)
    app.view("orders_now", app.stream("orders", schema="id bigint").to_table("id"))
    with pytest.raises(hr.JobError, match=r"'shop' has not come to epoch 1 within .*: it is at 0"):
        app.read("orders_now", epoch=1, timeout="20 milliseconds")
    done(app, 0, 1)
    assert app.read("orders_now", epoch=1, timeout="20 milliseconds").num_rows == 0
    later = threading.Timer(0.1, done, (app, 1, 3))
    later.start()
    assert app.read("orders_now", epoch=2).num_rows == 0
    later.join()
