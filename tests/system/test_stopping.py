"""Ctrl-C in a terminal, at every phase of a run."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.marked import MARK, kill, wait_until_gone
from tests.support.processes import until
from tests.support.terminal import Terminal, at_terminal, plain

APP = """
import headrace as hr

app = hr.App("clicks", home={home!r})
clicks = app.stream("clicks", schema="url string")
app.view("per_url", clicks.group("url", ttl=None).agg(n="count(*)"))
print("declared", flush=True)
"""

# A step that never comes to an end.
SLOW = """
import pathlib, time


def stall(event, state):
    pathlib.Path({begun!r}).touch()
    time.sleep(600)


app.view("stalled", clicks.process(stall, by="url", state="n int", returns="url string", ttl=None, order="arrival"), key="url")
with app.log.producer(acks="all") as producer:
    app.log.create_topic("clicks", schema="url string", exist_ok=True)
    producer.send("clicks", {{"url": "/"}})
"""


@contextmanager
def running(tmp_path: Path, more: str = "") -> Iterator[Terminal]:
    """`headrace run` at a terminal; in the end nothing of it is left, and it never showed a traceback."""
    file, run = tmp_path / "app.py", uuid.uuid4().hex
    file.write_text(APP.format(home=str(tmp_path / "home")) + more)
    try:
        with at_terminal([sys.executable, "-m", "headrace", "run", file], {MARK: run}) as terminal:
            yield terminal
        wait_until_gone(run)
    finally:
        kill(run)
    said = plain(terminal.written)
    assert [word for word in ("Traceback", "Error", "Exception", "reentrant") if word in said] == [], said
    # The cursor was hidden, and is shown again.
    assert terminal.written.rfind("\x1b[?25h") >= terminal.written.rfind("\x1b[?25l")


# What a person sees when the key is pressed: the app is being loaded, Spark starts, an epoch is done.
@pytest.mark.parametrize("phase", ["declared", "starting Spark", "epoch 1"])
def test_ctrl_c_ends_a_run_with_its_report(tmp_path: Path, phase: str) -> None:
    with running(tmp_path) as terminal:
        terminal.read_until(phase)
        terminal.press_ctrl_c()
        assert terminal.read_to_the_end() == 0
    assert "stopping: the current epoch finishes first" in plain(terminal.written)
    assert "job 'clicks' at epoch" in plain(terminal.written)


def test_a_second_ctrl_c_stops_an_epoch_that_takes_long_at_once_with_one_sentence(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with running(tmp_path, SLOW.format(begun=str(begun))) as terminal:
        until(begun.exists)
        terminal.press_ctrl_c()
        terminal.read_until("stopping")
        terminal.press_ctrl_c()
        assert terminal.read_to_the_end() == 130
    assert "stopped at once: the epoch at work was cut off" in plain(terminal.written)
    assert "at epoch" not in plain(terminal.written).partition("stopped at once")[2]
