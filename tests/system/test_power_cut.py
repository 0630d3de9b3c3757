"""A job whose power is cut: of its checkpoint only what was synced is there. It is mended, and has done everything once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

import headrace as hr
from headrace.checkpoint.journal import COMMITS
from headrace.jobs.directory import JobDirectory
from headrace.jobs.repair import repair
from tests.support.marked import MARK, kill
from tests.support.tracing import needs_strace

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORDS, KEYS, EPOCH = 6_000, 40, 20
APP = """
import headrace as hr

app = hr.App("clicks", home={home!r})
clicks = app.stream("clicks", schema="n int, key int, at timestamp", time="at", watermark=hr.bounded("5 seconds"))
per_key = clicks.group("key", ttl=None).agg(clicks="count(*)", last="max(n)")
app.view("per_key", per_key)
app.view("leaders", per_key.top(5, by="last"))
app.view("per_minute", clicks.window(hr.tumbling("1 minute"), by="key").agg(clicks="count(*)"))
app.sink(clicks.select("n"), hr.log("kept"))
"""
# A call during which another process made one stands in two lines.
_BEGUN = re.compile(r"(?P<process>\d+) +f(?:data)?sync\(\d+<(?P<path>[^>]+)>")
_DONE = re.compile(r"(?P<process>\d+) +(?:f(?:data)?sync\(\d+<[^>]+>|<\.\.\. f(?:data)?sync resumed>)\) += 0")


@needs_strace
@pytest.mark.timeout(600)  # a start of Spark that is traced, besides the warm one
@pytest.mark.usefixtures("spark")
def test_a_job_goes_on_exactly_from_what_a_power_cut_leaves(tmp_path: Path) -> None:
    file, home, random = tmp_path / "app.py", tmp_path / "home", Random(7)
    file.write_text(APP.format(home=str(home)))
    names: dict[str, hr.App] = {}
    exec(file.read_text(), names)
    app, place = names["app"], JobDirectory(home, "clicks")
    with app.log.producer(acks="all") as producer:
        for n in range(RECORDS):
            producer.send("clicks", {"n": n, "key": n % KEYS, "at": NOON + timedelta(seconds=n / 4)})
    synced = _cut_off(file, place, tmp_path / "calls")
    assert place.committed_epoch() < RECORDS / EPOCH
    # Else this shows nothing.
    assert _lose(place.checkpoint, synced, random) > 0
    repair(app.plan(), app.settings)
    # There is an epoch to go back to.
    assert place.committed_epoch() > 0
    app.run(until="end")
    assert sorted(app.log.read("kept")["n"].to_pylist()) == list(range(RECORDS))
    rows = app.read("per_key").to_pylist()
    assert {row["key"]: (row["clicks"], row["last"]) for row in rows} == {
        key: (RECORDS // KEYS, RECORDS - KEYS + key) for key in range(KEYS)
    }
    assert {row["last"] for row in app.read("leaders").to_pylist()} == set(range(RECORDS - 5, RECORDS))
    minutes = Counter((n % KEYS, n // 240) for n in range(RECORDS))
    found = {
        (row["key"], int((row["window_start"] - NOON).total_seconds()) // 60): row["clicks"] for row in app.read("per_minute").to_pylist()
    }
    assert found == minutes


def _cut_off(file: Path, place: JobDirectory, calls: Path) -> list[Path]:
    """Run the job until its state was synced, and for some epochs more, and end all of it at once; gives what was synced, in order."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, MARK: mark}
    traced = ["strace", "--follow-forks", "--seccomp-bpf", "--decode-fds=path", "--trace=fsync,fdatasync", f"--output={calls}"]
    command = [*traced, sys.executable, "-m", "headrace", "run", str(file), "--rows-per-epoch", str(EPOCH)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            # The directory of commits is what is synced last.
            _wait(process, lambda: calls.exists() and f"/{COMMITS}>" in calls.read_text())
            more = place.committed_epoch() + 5
            _wait(process, lambda: place.committed_epoch() >= more)
        finally:
            kill(mark)
    return list(_synced(calls.read_text()))


def _wait(process: subprocess.Popen[bytes], until: Callable[[], bool]) -> None:
    while not until():
        assert process.poll() is None, (process.stdout.read() if process.stdout else b"").decode()
        time.sleep(0.05)


def _synced(calls: str) -> Iterator[Path]:
    """What strace saw being synced, in the order in which that was done."""
    begun: dict[str, Path] = {}
    for line in calls.splitlines():
        if call := _BEGUN.match(line):
            begun[call["process"]] = Path(call["path"])
        if done := _DONE.match(line):
            yield begun.pop(done["process"])


def _lose(checkpoint: Path, synced: list[Path], random: Random) -> int:
    """Let files that would not be there for sure be torn or gone, some of them; gives how many."""
    last = {path: place for place, path in enumerate(synced)}
    lost = 0
    for file in sorted(path for path in checkpoint.rglob("*") if path.is_file()):
        # Its content, and then the name under which it is found.
        safe = file in last and last.get(file.parent, -1) > last[file]
        if not safe and random.random() < 0.9:
            random.choice((_gone, _empty, _cut))(file)
            lost += 1
    return lost


def _gone(file: Path) -> None:
    file.unlink()


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
