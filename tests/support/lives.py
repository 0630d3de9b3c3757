"""A job that is started and stopped again and again, in a random order that a seed decides, on a topic that is empty, grows or is idle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import headrace as hr
from headrace.jobs.directory import JobDirectory
from tests.support.marked import MARK, kill, wait_until_gone
from tests.support.processes import until

URLS = 5


class Life:
    """An app in a file, how records are sent to it, and what must be in its view."""

    def __init__(self, file: Path, send: Callable[[Sequence[str]], None], seed: int) -> None:
        self._file, self._send, self._random = file, send, Random(seed)
        names: dict[str, hr.App] = {}
        exec(file.read_text(), names)
        self.app = names["app"]
        self._place = JobDirectory(self.app.settings.home, self.app.name)
        self.sent: Counter[str] = Counter()

    def live(self, stops: Sequence[str]) -> None:
        """Start the job as often as there are stops, and stop it so: `caught-up`, `SIGINT`, `SIGTERM` or `SIGKILL`."""
        for number, stop in enumerate(stops):
            # The first runs meet an empty topic.
            if number > 1 and self._random.random() < 0.6:
                self.grow()
            if stop == "caught-up":
                self.app.run(until="caught-up")
            elif stop == "SIGKILL":
                self._killed()
            else:
                self._signalled(signal.Signals[stop])
        report = self.app.run(until="caught-up")
        assert {row["url"]: row["n"] for row in self.app.read("per_url").to_pylist()} == self.sent
        assert {row["step"]: row["in"] for row in report.accounting}.get("clicks", 0) == self.sent.total()

    def grow(self) -> None:
        """Send some records."""
        urls = [f"/{self._random.randrange(URLS)}" for _ in range(self._random.randrange(1, 60))]
        self._send(urls)
        self.sent.update(urls)

    def _signalled(self, number: signal.Signals) -> None:
        """A run of this process, stopped by a signal at once, or in or after an epoch with new records."""
        patient, before = self._random.random() < 0.6, self._place.committed_epoch()
        if patient:
            self.grow()

        def stop() -> None:
            until(self._place.running)
            if patient:
                until(lambda: self._place.committed_epoch() > before)
            os.kill(os.getpid(), number)

        stopper = threading.Thread(target=stop)
        # A run listens to signals before it takes hold of its job.
        stopper.start()
        self.app.run()
        stopper.join()

    def _killed(self) -> None:
        run, before = uuid.uuid4().hex, self._place.committed_epoch()
        self.grow()
        command = [sys.executable, "-m", "headrace", "run", str(self._file), "--rows-per-epoch", "10"]
        with subprocess.Popen(command, env={**os.environ, MARK: run}, stderr=subprocess.PIPE) as process:
            until(lambda: self._place.committed_epoch() > before or process.poll() is not None)
            assert process.poll() is None, (process.stderr.read() if process.stderr else b"").decode()
            kill(run)
        wait_until_gone(run)
