"""The page view demo: visitors write, Spark counts, and a board shows both until it is stopped."""

from __future__ import annotations

from headrace.cli.demos import counting, visitors
from headrace.cli.demos.figures import FigureObserver, Figures
from headrace.cli.demos.live import LiveDemo
from headrace.core.settings import Settings
from headrace.jobs.start.outputs import create_outputs


class PageViews(LiveDemo[Figures]):
    """One run of the demo, in a `with` block."""

    records = "page views"

    def __init__(self, settings: Settings, *, rate: float) -> None:
        app = counting.declare(settings)
        super().__init__(app, counting, visitors, topic=visitors.TOPIC, rate=rate)
        # The board follows the counts from before the first of them is made.
        create_outputs(app.log, app.plan(), partitions=2)
        self._counts = app.log.consumer(counting.LIVE, start="end")
        self._observer = FigureObserver()

    def figures(self) -> Figures:
        progress = self.job.progress()
        self._observer.learn(self._counts.poll(timeout="0s"))
        written = self.written
        counted = max(0, written - progress.waiting) if progress is not None and progress.epoch else 0
        return self._observer.look(self.seconds, written, counted, progress)
