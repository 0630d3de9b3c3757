"""The facts of all jobs as Prometheus metrics: base units, totals that only grow, one name for one thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_COUNTED = {
    "in": ("headrace_step_records_in", "Records that a step took in."),
    "out": ("headrace_step_records_out", "Records that a step passed on, or took into its state."),
    "late": ("headrace_step_records_late", "Records that came after their windows had closed."),
    "duplicate": ("headrace_step_records_duplicate", "Records that were dropped as duplicates."),
    "filtered": ("headrace_step_records_filtered", "Records that a condition kept out."),
    "dead_letter": ("headrace_step_dead_letters", "Records that could not be read or computed."),
}


def exposition(jobs: Sequence[Mapping[str, Any]], views: Mapping[str, int], subscribers: int) -> bytes:
    """The statuses of jobs, the rows of views and the subscribers of a server as a page that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(_Page((*job_metrics(jobs), *server_metrics(views, subscribers))))
    return generate_latest(registry)


def server_metrics(views: Mapping[str, int], subscribers: int) -> Iterable[Metric]:
    """The rows of views in the memory of a server, and its subscribers."""
    rows = GaugeMetricFamily("headrace_view_rows", "Rows of a view in the memory of this server.", labels=["view"])
    for view, count in views.items():
        rows.add_metric([view], count)
    yield rows
    yield GaugeMetricFamily("headrace_subscribers", "Subscribers of this server.", subscribers)


def job_metrics(jobs: Sequence[Mapping[str, Any]]) -> Iterable[Metric]:
    """The statuses of jobs."""
    facts = _Facts(jobs)
    yield from facts.steps()
    yield from facts.progress()


class _Page(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class _Facts:
    def __init__(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        self._jobs = jobs

    def steps(self) -> Iterable[Metric]:
        for name, (metric, words) in _COUNTED.items():
            counter = CounterMetricFamily(metric, words, labels=["job", "step"])
            for job in self._jobs:
                # The records that a side topic still has become fewer by retention, and a total must not.
                for step in (found for found in job["steps"] if found["kind"] not in ("late", "dead")):
                    counter.add_metric([job["name"], step["name"]], step[name])
            yield counter
        for name, words in (("state_rows", "Rows that a step keeps."), ("state_bytes", "Bytes of state that a step has stored.")):
            gauge = GaugeMetricFamily(f"headrace_step_{name}", words, labels=["job", "step"])
            for job in self._jobs:
                for step in job["steps"]:
                    if step[name] is not None:
                        gauge.add_metric([job["name"], step["name"]], step[name])
            yield gauge
        written = SummaryMetricFamily("headrace_sink_write_seconds", "The writes of tasks to a view or sink.", labels=["job", "sink"])
        for job in self._jobs:
            for step in job["steps"]:
                if step["writes"] is not None:
                    written.add_metric([job["name"], step["name"]], step["writes"], step["write_seconds"])
        yield written
        letters = CounterMetricFamily("headrace_dead_letters", "Dead letters by kind of reason.", labels=["job", "step", "reason"])
        for job in self._jobs:
            for found in job.get("dead_reasons", ()):
                letters.add_metric([job["name"], found["step"], found["reason"]], found["records"])
        yield letters

    def progress(self) -> Iterable[Metric]:
        facts = (
            ("headrace_job_running", "Whether a job runs.", lambda job: float(job["state"] == "running")),
            ("headrace_job_epoch", "The last committed epoch.", lambda job: job["epoch"]),
            ("headrace_job_lag_records", "Records of the log that wait to be taken in.", lambda job: job["lag"]),
            ("headrace_job_lag_seconds", "Event time between the records that wait and those taken in.", lambda job: job["lag_seconds"]),
            ("headrace_job_watermark_timestamp_seconds", "The watermark.", lambda job: _seconds(job["watermark"])),
            (
                "headrace_job_watermark_delay_seconds",
                "From the watermark to the wall clock.",
                lambda job: _age(job, _seconds(job["watermark"])),
            ),
            ("headrace_job_last_commit_timestamp_seconds", "When the last epoch was committed.", _committed),
            ("headrace_job_last_commit_age_seconds", "How long ago that was.", lambda job: _age(job, _committed(job))),
            (
                "headrace_job_last_sync_age_seconds",
                "How long ago the state was last made to outlast a power cut.",
                lambda job: _age(job, _seconds(job.get("synced_at"))),
            ),
            ("headrace_job_restarts", "How often the job was started again in this run.", lambda job: job.get("restarts")),
            ("headrace_job_interruptions", "The last runs that were killed or failed.", lambda job: len(job.get("interruptions", ()))),
        )
        for name, words, value in facts:
            gauge = GaugeMetricFamily(name, words, labels=["job"])
            for job in self._jobs:
                if (found := value(job)) is not None:
                    gauge.add_metric([job["name"]], found)
            yield gauge
        yield from self._partitions()
        yield from self._durations()

    def _partitions(self) -> Iterable[Metric]:
        holders = GaugeMetricFamily(
            "headrace_job_watermark_holder", "The partition that the watermark waits for.", labels=["job", "stream", "partition"]
        )
        records = GaugeMetricFamily(
            "headrace_partition_lag_records", "Records of a partition that wait.", labels=["job", "stream", "partition"]
        )
        seconds = GaugeMetricFamily(
            "headrace_partition_lag_seconds", "For how long the first of them has waited.", labels=["job", "stream", "partition"]
        )
        for job in self._jobs:
            if holder := job.get("holder"):
                # A stream that had no record yet is held as a whole.
                partition = "" if holder["partition"] is None else str(holder["partition"])
                holders.add_metric([job["name"], holder["stream"], partition], 1.0)
            for lag in job.get("lags", ()):
                labels = [job["name"], lag["stream"], str(lag["partition"])]
                records.add_metric(labels, lag["records"])
                seconds.add_metric(labels, lag["seconds"])
        yield holders
        yield records
        yield seconds

    def _durations(self) -> Iterable[Metric]:
        latency = HistogramMetricFamily(
            "headrace_job_latency_seconds", "From the append of a record to the commit of its epoch, by samples.", labels=["job"]
        )
        epochs = HistogramMetricFamily("headrace_job_epoch_duration_seconds", "From the plan of an epoch to its commit.", labels=["job"])
        phases = GaugeMetricFamily("headrace_job_epoch_phase_seconds", "The phases of the last epoch.", labels=["job", "phase"])
        for job in self._jobs:
            for family, found in ((latency, job.get("latency")), (epochs, job.get("durations"))):
                if found:
                    family.add_metric([job["name"]], found["buckets"], sum_value=found["sum"])
            last: Mapping[str, float] = next((epoch["phases"] for epoch in reversed(job["epochs"]) if epoch.get("phases")), {})
            for phase, seconds in last.items():
                phases.add_metric([job["name"], phase], seconds)
        yield latency
        yield epochs
        yield phases


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else datetime.fromisoformat(moment).timestamp()


def _committed(job: Mapping[str, Any]) -> float | None:
    return _seconds(job.get("committed_at"))


def _age(job: Mapping[str, Any], moment: float | None) -> float | None:
    now = _seconds(job.get("told_at"))
    return None if moment is None or now is None else max(0.0, now - moment)
