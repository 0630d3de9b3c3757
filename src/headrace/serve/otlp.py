"""The facts of jobs as OTLP metrics, sent to a collector again and again: names, labels and values are those of `/metrics`.

The standard variables say where and how: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL, OTEL_SERVICE_NAME and others.
"""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from headrace.connectors.targets import need_client
from headrace.core.errors import HeadraceError, SettingsError
from headrace.core.repeating import repeated

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Gauge, Histogram, HistogramDataPoint, MetricsData, Sum
    from prometheus_client.core import Metric
    from prometheus_client.samples import Sample

_INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
_UNITS = {"_seconds": "s", "_bytes": "By"}
# Since when a counter counts is not known.
_UNKNOWN = 0
_log = logging.getLogger("headrace.otlp")


@contextmanager
def exported(families: Callable[[], Iterable[Metric]]) -> Iterator[None]:
    """Send these metrics at the standard interval for as long as the block lasts, and once at its end."""
    need_client("opentelemetry.exporter.otlp.proto.http.metric_exporter", "the exporter of OpenTelemetry", "otel")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    every, exporter = _interval(), OTLPMetricExporter()

    def send() -> None:
        try:
            exporter.export(metrics_data(families()))
        except HeadraceError as error:
            _log.warning("metrics are not sent: %s", error)

    try:
        with repeated(send, seconds=every, name="headrace-otlp"):
            yield
    finally:
        send()
        exporter.shutdown()


def metrics_data(families: Iterable[Metric]) -> MetricsData:
    """Prometheus' metrics as those of OpenTelemetry, under one resource."""
    from opentelemetry.sdk.metrics.export import Metric as Sent
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    now = time.time_ns()
    sent = [Sent(family.name, family.documentation, _unit(family.name), _points(family, now)) for family in families if family.samples]
    resource = Resource.create({"service.name": "headrace"} if _unnamed() else None)
    scope = ScopeMetrics(InstrumentationScope("headrace"), sent, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _points(family: Metric, now: int) -> Sum | Gauge | Histogram:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Histogram, NumberDataPoint, Sum

    whole = AggregationTemporality.CUMULATIVE
    if family.type in ("histogram", "summary"):
        return Histogram(_distributions(family.samples, now), whole)
    points = [NumberDataPoint(sample.labels, _UNKNOWN, now, float(sample.value)) for sample in family.samples]
    return Sum(points, whole, is_monotonic=True) if family.type == "counter" else Gauge(points)


def _distributions(samples: Sequence[Sample], now: int) -> list[HistogramDataPoint]:
    """The samples of a histogram or a summary, one point for each set of labels; a summary has one bucket, with everything in it."""
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    found: dict[tuple[tuple[str, str], ...], dict[str, float]] = defaultdict(dict)
    for sample in samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        found[labels][sample.labels.get("le") or sample.name.rpartition("_")[2]] = sample.value
    points = []
    for labels, values in found.items():
        bounds = sorted(float(name) for name in values if name not in ("sum", "count", "+Inf"))
        within = [0, *(round(values[str(bound)]) for bound in bounds), round(values["count"])]
        counts = [after - before for before, after in pairwise(within)]
        points.append(
            HistogramDataPoint(
                dict(labels), _UNKNOWN, now, within[-1], values["sum"], counts, bounds, min=float("inf"), max=float("-inf")
            )
        )  # fmt: skip
    return points


def _unit(name: str) -> str:
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")


def _unnamed() -> bool:
    """Whether the environment does not say the name of the service."""
    return "OTEL_SERVICE_NAME" not in os.environ and "service.name" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


def _interval() -> float:
    text = os.environ.get(_INTERVAL) or "60000"
    try:
        found = float(text) / 1000
    except ValueError:
        found = 0.0
    if not found > 0:
        raise SettingsError(f"{_INTERVAL}={text!r} is not a time", hint="give milliseconds above zero, as in 60000")
    return found
