"""Metrics are sent to a collector of OpenTelemetry: the facts that Prometheus reads, with the same names and values."""

from __future__ import annotations

import sys

import pytest

from headrace.core.errors import SettingsError
from headrace.jobs.facts.description import read_description
from headrace.ops.servers.ports import free_ports
from headrace.serve.http.metrics import job_metrics
from headrace.serve.otlp import exported
from headrace.serve.server import Server, ServeSettings
from headrace.serve.status import JobStatus
from tests.support.collector import collecting, labels
from tests.support.troubled import TroubledJob


@pytest.fixture
def collector(monkeypatch):
    with collecting() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
        yield found


@pytest.fixture
def shop(tmp_path):
    job = TroubledJob(tmp_path)
    job.send(4)
    job.commit({0: 600, 1: 4})
    job.account("orders", taken=4, out=3, late=1)
    job.wrote("sold", 0.25, 1.5)
    yield job
    job.log.close()


def told(job):
    return job_metrics([JobStatus(job.log, job.place).told(read_description(job.place.path))])


def test_a_collector_is_sent_the_names_labels_and_values_of_prometheus(shop, collector):
    with exported(lambda: told(shop)):
        collector.wait_for(2)
    found = collector.sent[-1]
    (late,) = (point for point in found["headrace_step_records_late"].sum.data_points if labels(point)["step"] == "orders")
    assert (labels(late), late.as_double) == ({"job": "shop", "step": "orders"}, 1)
    assert found["headrace_step_records_late"].sum.is_monotonic
    (epoch,) = found["headrace_job_epoch"].gauge.data_points
    assert epoch.as_double == 1
    (written,) = found["headrace_sink_write_seconds"].histogram.data_points
    assert (labels(written), written.count, written.sum) == ({"job": "shop", "sink": "sold"}, 2, 1.75)
    assert found["headrace_sink_write_seconds"].unit == "s"
    assert collector.services == {"headrace"}


def test_a_histogram_is_sent_with_the_counts_of_each_bucket(shop, collector):
    with exported(lambda: told(shop)):
        collector.wait_for(1)
    (latency,) = collector.sent[-1]["headrace_job_latency_seconds"].histogram.data_points
    assert (latency.count, sum(latency.bucket_counts)) == (4, 4)
    assert len(latency.bucket_counts) == len(latency.explicit_bounds) + 1


def test_the_last_facts_are_sent_at_the_end_however_long_the_interval_is(shop, collector, monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop-jobs")
    with exported(lambda: told(shop)):
        pass
    assert len(collector.sent) == 1
    assert collector.services == {"shop-jobs"}


def test_a_server_sends_the_rows_of_its_views_and_its_subscribers(shop, collector):
    server = Server(shop.home, ServeSettings(port=free_ports(1)[0], otel=True))
    with server.background():
        collector.wait_for(1)
    (subscribers,) = collector.sent[-1]["headrace_subscribers"].gauge.data_points
    assert subscribers.as_double == 0
    assert "headrace_job_epoch" not in collector.sent[-1]


def test_without_the_extra_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(SettingsError) as refused, exported(list):
        pass
    assert refused.value.hint == "pip install 'headrace[otel]'"


def test_an_interval_that_is_no_time_is_refused(monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "soon")
    with pytest.raises(SettingsError, match="'soon' is not a time"), exported(list):
        pass
