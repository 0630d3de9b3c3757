"""The job of a demo in a process of its own, which may be killed: it is started again, and continues."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

from headrace.app import App
from headrace.checkpoint.journal import COMMITS, OFFSETS, entry
from headrace.core.clock import to_datetime
from headrace.core.errors import HeadraceError, JobError
from headrace.core.settings import load_settings
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.last_run import LastRun
from headrace.jobs.facts.listing import listed
from headrace.jobs.facts.progress import Progress
from headrace.operators.event_time.epoch_time import BEGINNING, END

_PATIENCE = 40.0
# Half of the work until the first counts is that of the second compiler (30 seconds of the JVM's time with it, 16 without).
_SOON = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


class JobProcess:
    """The running job: a driver process that is started again when it is killed. `module` declares its app: `declare(settings)`."""

    def __init__(self, app: App, module: str) -> None:
        self._app, self._module = app, module
        self._place = JobDirectory(app.settings.home, app.name)
        self._began = self._place.committed_epoch()
        self._driver = self._start()

    @property
    def error(self) -> HeadraceError | None:
        """The error that ended the job; None while it runs. A job that was killed is running again after this."""
        code = self._driver.poll()
        if code is None:
            return None
        if code < 0:
            assert self._driver.stdin is not None
            self._driver.stdin.close()
            self._driver = self._start()
            return None
        run = LastRun.of(self._place)
        said = run.last_error if run is not None and run.last_error else f"its process ended with code {code}"
        return JobError(f"the job of the demo stopped: {said}", hint=f"its log is {self._output}")

    def progress(self) -> Progress | None:
        """The progress of the job, None before this run has committed anything."""
        plan = self._place.committed_plan()
        if plan is None or plan.epoch <= self._began:
            return None
        mark = plan.watermark
        waiting = listed(self._place, self._app.log).lag or 0
        watermark = to_datetime(mark) if BEGINNING < mark < END else None
        return Progress(plan.epoch, watermark, 0, waiting, 0.0, self._seconds(plan.epoch))

    def stop(self) -> None:
        """End the job and its process; the epoch at work may finish."""
        assert self._driver.stdin is not None
        self._driver.stdin.close()
        try:
            self._driver.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()

    @property
    def _output(self) -> Path:
        return self._app.settings.home / "demo.log"

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", __name__, self._module, str(self._app.settings.home)]
        with self._output.open("ab") as output:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True)

    def _seconds(self, epoch: int) -> float | None:
        """How long an epoch took from its plan to its commit."""
        try:
            planned, committed = (entry(self._place.checkpoint, kind, epoch - 1).stat().st_mtime for kind in (OFFSETS, COMMITS))
        except FileNotFoundError:
            return None
        return max(0.0, committed - planned)


def main(module: str, home: str) -> None:
    """Run the job until standard input ends: it never outlives the process that started it."""
    from headrace.jobs.start.run import JobRun

    app: App = import_module(module).declare(load_settings(home=Path(home)))
    run = JobRun(app.plan(), app.settings, app.log, config=_SOON)

    def listen() -> None:
        sys.stdin.read()
        run.stop()
        if run.progress is None:
            # Spark is still starting; it ends when it notices that this process has.
            os._exit(0)

    threading.Thread(target=listen, name="listener", daemon=True).start()
    run.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
