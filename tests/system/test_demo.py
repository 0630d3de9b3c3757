"""The demo counts right, and when stopped it returns the terminal with nothing left running."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.log import Log
from tests.support.marked import MARK, wait_until_gone
from tests.support.processes import PATIENCE
from tests.support.terminal import plain

DEMO = [sys.executable, "-m", "headrace", "demo", "pageviews"]


@contextmanager
def started(home: Path, *options: str, **streams: object) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    run = uuid.uuid4().hex
    environment = {**os.environ, MARK: run, "COLUMNS": "100", "TERM": "xterm-256color"}
    process = subprocess.Popen([*DEMO, "--home", str(home), *options], env=environment, start_new_session=True, **streams)
    try:
        yield process, run
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def test_it_counts_every_page_view_and_ends_by_itself(home):
    with started(home, "--seconds", "4", "--rate", "1000", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as (process, run):
        out, err = process.communicate(timeout=240)
    assert (process.returncode, err) == (0, b"stopping ...\n")
    *progress, end = [json.loads(line) for line in out.splitlines()]
    assert end["ended"]
    assert end["written"] == end["counted"] > 0
    assert end["lag_rows"] == end["lag_seconds"] == 0
    assert all(line["written"] >= line["counted"] for line in progress)
    wait_until_gone(run)

    log = Log(home / "log")
    views = log.read("page_views").to_pylist()
    # A broken phone sends a view without a time now and then: a dead letter.
    timed = [view for view in views if view["viewed_at"] is not None]
    expected = Counter((view["url"], view["viewed_at"].replace(second=0, microsecond=0)) for view in timed)
    counted = {(row["url"], row["minute"]): row["views"] for row in log.read("views_so_far").to_pylist()}
    assert len(views) == end["written"]
    assert counted == expected


def test_ctrl_c_on_a_terminal_stops_it_cleanly(home):
    ours, theirs = pty.openpty()
    with started(home, "--rate", "500", stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=_take_terminal) as (process, run):
        os.close(theirs)
        # A screen may be read in two parts: the figures, then the table.
        written = _read_until(ours, ("epochs of", "/search"), 240)
        assert "epochs of" in plain(written)
        assert "/search" in plain(written)
        assert "the page: http://127.0.0.1:" in plain(written)
        os.write(ours, b"\x03")
        written += _read_until(ours, (), PATIENCE)
        code = process.wait(PATIENCE)
    os.close(ours)
    assert code == 0
    assert "Traceback" not in written
    assert "page views written and" in plain(written)
    # The cursor was hidden, and is shown again.
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    wait_until_gone(run)


def test_ctrl_c_while_spark_starts_stops_it_too(home):
    with started(home, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as (process, run):
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"Traceback" not in err
    wait_until_gone(run)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read_until(terminal: int, texts: tuple[str, ...], seconds: float) -> str:
    """What is written until all of the texts are there; without any, until the end."""
    written, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux says EIO when the last writer closed
            break
        written += chunk
        if not chunk or (texts and all(text in plain(written.decode(errors="replace")) for text in texts)):
            break
    return written.decode(errors="replace")
