"""The fraud demo: a gateway writes payments, Spark judges them, and a board shows alerts next to the truth."""

from __future__ import annotations

import sys

from headrace.app import App
from headrace.cli.demos.fraud import gateway
from headrace.cli.demos.fraud.figures import FraudFigures, FraudObserver
from headrace.cli.demos.fraud.rules import ALERTS, PAYMENTS, Options
from headrace.cli.demos.fraud.rules import declare as declare_rules
from headrace.cli.demos.live import LiveDemo
from headrace.core.settings import Settings
from headrace.jobs.start.outputs import create_outputs

NAME = "fraud"
# The gateway writes in the order of time; its clock and the job's are one.
_DISORDER = "50 ms"


def declare(settings: Settings) -> App:
    """The app of the demo."""
    app = App(NAME, settings=settings)
    gateway.create(app.log)
    declare_rules(app, Options(disorder=_DISORDER))
    return app


class FraudDemo(LiveDemo[FraudFigures]):
    """One run of the demo, in a `with` block."""

    records = "payments"

    def __init__(self, settings: Settings, *, rate: float) -> None:
        app = declare(settings)
        super().__init__(app, sys.modules[__name__], gateway, topic=PAYMENTS, rate=rate)
        create_outputs(app.log, app.plan(), partitions=2)
        self._alerts, self._planted = (app.log.consumer(topic, start="end") for topic in (ALERTS, gateway.PLANTED))
        self._observer = FraudObserver()

    def figures(self) -> FraudFigures:
        progress = self.job.progress()
        self._observer.learn(*(consumer.poll(timeout="0s") for consumer in (self._alerts, self._planted)))
        written = self.written
        judged = max(0, written - progress.waiting) if progress is not None and progress.epoch else 0
        return self._observer.look(self.seconds, written, judged, progress)
