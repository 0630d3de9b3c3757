"""The app of the demo, and its job in a thread of its own, so that whoever shows it is never held up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from headrace.api.windows import bounded, tumbling
from headrace.app import App
from headrace.cli.demos import visitors
from headrace.core.errors import HeadraceError
from headrace.core.settings import Settings

if TYPE_CHECKING:
    from headrace.jobs.progress import Progress
    from headrace.jobs.running import JobRun

LIVE, FINAL = "views_so_far", "views_per_url"
_PATIENCE = 40.0
# Half of the work until the first counts is that of the second compiler (30 seconds of the JVM's time with it, 16 without).
_SOON = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def declare(settings: Settings) -> App:
    """Page views per URL and minute: as they come, and once for all when the minute is over."""
    app = App("pageviews", settings=settings)
    visitors.create(app.log)
    views = app.stream(
        visitors.TOPIC, schema=visitors.COLUMNS, key="url", time="viewed_at", watermark=bounded("10 seconds", idle="30 seconds")
    )
    minutes = views.with_columns(minute="date_trunc('minute', viewed_at)")
    app.view(LIVE, minutes.group(["url", "minute"], ttl="10 minutes").agg(views="count(*)"))
    app.view(FINAL, views.window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    return app


class Counting:
    """The running job."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._run: JobRun | None = None
        self._wanted = True
        self.error: HeadraceError | None = None
        self._thread = threading.Thread(target=self._work, name="job", daemon=True)
        self._thread.start()

    def progress(self) -> Progress | None:
        """How far the job is, None before it began."""
        return self._run.progress if self._run is not None else None

    def stop(self) -> None:
        """End the job, the session and its processes. A session that is still starting ends with this process, which it notices."""
        self._wanted = False
        run = self._run
        if run is not None:
            run.stop()
            # Before its first look the job is still starting Spark, and that takes as long as it takes.
            self._thread.join(_PATIENCE if run.progress is not None else 0)
        if not self._thread.is_alive():
            from headrace.spark.session import shutdown

            shutdown()

    def _work(self) -> None:
        from headrace.jobs.running import JobRun

        run = JobRun(self._app.plan(), self._app.settings, self._app.log, config=_SOON)
        self._run = run
        try:
            if self._wanted:
                run.run()
        except HeadraceError as error:
            self.error = error
