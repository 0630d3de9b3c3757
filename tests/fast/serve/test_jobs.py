"""A job is told over HTTP: what became of the records of each step, its last epochs, and the same facts as metrics."""

import shutil
import subprocess
from datetime import timedelta

import httpx2 as httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.jobs.facts.description import read_description
from headrace.ops.alerts.channels import Channels
from headrace.ops.alerts.watch import make_round
from headrace.ops.servers.ports import free_ports
from headrace.serve.http.metrics import exposition
from headrace.serve.http.metrics_server import metrics_served
from headrace.serve.http.tokens import tokens_in
from headrace.serve.status import JobStatus
from headrace.testing.written import accounted
from tests.support.troubled import TroubledJob


def test_a_job_is_told_with_the_counts_and_state_of_each_step(totals, serving):
    accounted(totals, 1, facts={"taken": 10, "out": 8, "dead_letter": 2}, totals={"taken": 8, "out": 8}, kept=("facts.table", 3, 120))
    totals.epoch([{"url": "/a", "user": "ada", "views": 1}], watermark=1_767_268_800_000_000)
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        job = client.get("/api/v1/jobs/totals-job").json()
    steps = {step["name"]: step for step in job["steps"]}
    assert (job["epoch"], job["watermark"], job["state"]) == (1, "2026-01-01T12:00:00+00:00", "stopped")
    assert (steps["facts"]["in"], steps["facts"]["out"], steps["facts"]["dead_letter"]) == (10, 8, 2)
    assert steps["totals"]["key"] == ["url"]
    assert [(epoch["epoch"], epoch["in"], epoch["dead_letter"]) for epoch in job["epochs"]] == [(1, 10, 2)]


def test_counts_go_on_from_epoch_to_epoch(totals, serving):
    with serving() as client:
        for epoch in (1, 2):
            accounted(totals, epoch, facts={"taken": 5, "out": 5})
            totals.epoch([])
        client.get("/api/v1/views/totals", params={"epoch": 2}).raise_for_status()
        job = client.get("/api/v1/jobs/totals-job").json()
    assert {step["name"]: step["in"] for step in job["steps"]}["facts"] == 10


def test_metrics_are_in_the_words_of_prometheus(totals, serving):
    accounted(totals, 1, facts={"taken": 10, "out": 7, "late": 3})
    totals.epoch([{"url": "/a", "user": "ada", "views": 1}])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        found = {
            (sample.name, sample.labels.get("step")): sample.value
            for family in text_string_to_metric_families(client.get("/metrics").text)
            for sample in family.samples
        }
    assert found["headrace_step_records_in_total", "facts"] == 10
    assert found["headrace_step_records_late_total", "facts"] == 3
    assert found["headrace_job_epoch", None] == 1
    assert found["headrace_view_rows", None] == 1


def test_the_health_of_a_job_is_what_why_finds(totals, serving):
    accounted(totals, 1, facts={"taken": 10, "out": 8, "dead_letter": 2})
    totals.epoch([])
    with serving() as client:
        told = client.get("/api/v1/jobs/totals-job/health").json()
    found = {finding["rule"]: finding for finding in told["findings"]}
    assert not told["healthy"]
    assert found["not running"]["fact"] == "job 'totals-job' is stopped"
    assert found["dead letters"]["fact"] == "2 of 10 records of 'facts' are dead letters"


def test_a_job_that_is_not_there_is_told_so(totals, serving):
    with serving() as client:
        assert client.get("/api/v1/jobs/other").status_code == 404
        assert client.get("/api/v1/jobs/other/health").status_code == 404


def samples(client):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }


def test_lag_is_told_for_each_partition_in_records_and_seconds_and_latency_as_a_histogram(home, serving):
    job = TroubledJob(home)
    job.send(4)
    job.commit({0: 0, 1: 0})
    job.send(3)
    job.clock.advance(timedelta(seconds=7))
    job.log.close()
    with serving() as client:
        client.server.hub.log.clock = job.clock
        found, told = samples(client), client.get("/api/v1/jobs/shop").json()
    assert sum(lag["records"] for lag in told["lags"]) == 3
    assert max(lag["seconds"] for lag in told["lags"]) == 7.0
    labels = [(("job", "shop"), ("partition", str(lag["partition"])), ("stream", "orders")) for lag in told["lags"]]
    assert sum(found["headrace_partition_lag_records", *label] for label in labels) == 3
    assert found["headrace_job_latency_seconds_count", ("job", "shop")] == 4
    assert found["headrace_job_latency_seconds_bucket", ("job", "shop"), ("le", "+Inf")] == 4
    assert found["headrace_job_last_commit_age_seconds", ("job", "shop")] >= 0


def test_the_write_time_of_each_sink_is_told_in_seconds(home, serving):
    job = TroubledJob(home)
    job.commit({0: 0, 1: 0})
    job.wrote("sold", 0.25, 1.5)
    job.log.close()
    with serving() as client:
        found = samples(client)
    assert found["headrace_sink_write_seconds_count", ("job", "shop"), ("sink", "sold")] == 2
    assert found["headrace_sink_write_seconds_sum", ("job", "shop"), ("sink", "sold")] == 1.75


def test_the_delay_of_the_watermark_is_told_with_the_partition_that_holds_it(home, serving):
    job = TroubledJob(home)
    job.commit({0: 600, 1: 4})
    job.log.close()
    with serving() as client:
        found = samples(client)
    (delay,) = (value for name, value in found.items() if name[0] == "headrace_job_watermark_delay_seconds")
    assert delay > 0
    holders = [name[1:] for name in found if name[0] == "headrace_job_watermark_holder"]
    assert holders == [(("job", "shop"), ("partition", "1"), ("stream", "orders"))]


def test_dead_letters_are_told_by_kind_of_reason_without_the_values_of_records(home, serving):
    job = TroubledJob(home)
    job.commit({0: 0, 1: 0})
    letter = {"partition": 0, "offset": 1, "record": "{}"}
    with job.log.producer(linger=None) as producer:
        for number in range(30):
            producer.send("orders.dead", {"step": "orders", "reason": f"price is 'secret {number}', and that is no number", **letter})
            producer.send("orders.dead", {"step": "orders", "reason": "x" * (number + 1), **letter})
        producer.send("orders.dead", {"step": "a step of another job", "reason": "x", **letter})
    job.log.close()
    with serving() as client:
        found = {dict(name[1:])["reason"]: value for name, value in samples(client).items() if name[0] == "headrace_dead_letters_total"}
    assert found["price is …, and that is no number"] == 30
    assert found["other"] == 30 - 19
    assert sum(found.values()) == 60


def test_records_that_retention_may_remove_are_in_no_total(home, serving):
    job = TroubledJob(home)
    job.commit({0: 0, 1: 0})
    with job.log.producer(linger=None) as producer:
        producer.send("orders.dead", {"step": "orders", "reason": "x", "partition": 0, "offset": 1, "record": "{}"})
    job.log.close()
    with serving() as client:
        steps = {dict(name[1:])["step"] for name in samples(client) if name[0] == "headrace_step_records_in_total"}
    assert {"orders", "sold"} <= steps
    assert not steps & {"orders.late", "orders.dead"}


def test_durations_of_epochs_are_a_histogram_that_only_grows(totals):
    status, counts = JobStatus(totals.log, totals.place), []
    for epoch in range(1, 4):
        accounted(totals, epoch, facts={"taken": 5, "out": 5})
        totals.epoch([])
        told = status.told(read_description(totals.place.path))
        counts.append(told["durations"]["buckets"][-1])
    assert counts == [("+Inf", 1.0), ("+Inf", 2.0), ("+Inf", 3.0)]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")
def test_promtool_finds_nothing_wrong_with_the_metrics(totals, serving):
    accounted(totals, 1, facts={"taken": 10, "out": 7, "late": 3})
    totals.epoch([])
    with serving() as client:
        checked = subprocess.run(["promtool", "check", "metrics"], input=client.get("/metrics").content, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_run_without_a_server_serves_its_metrics_to_anyone_with_the_token(tmp_path):
    tokens, (port,) = tokens_in(tmp_path), free_ports(1)
    right = {"Authorization": f"Bearer {tokens.read}"}
    with metrics_served(port, tokens, lambda: exposition([], {}, 0)) as address:
        answers = [
            httpx.get(address, headers=right),
            httpx.get(address),
            httpx.get(address, headers={**right, "Host": "evil.example"}),
            httpx.get(address, headers={**right, "Origin": "http://evil.example"}),
            httpx.get(address.replace("metrics", "other"), headers=right),
            httpx.post(address, headers=right),
        ]
    assert [answer.status_code for answer in answers] == [200, 401, 421, 421, 404, 501]
    assert "headrace_subscribers 0.0" in answers[0].text


def test_the_alerts_of_a_job_are_told_to_the_page(home, serving):
    job = TroubledJob(home, alerts=[{"condition": "lag_records > 2", "message": "it is behind", "name": "lag"}])
    job.send(3)
    job.commit({0: 0, 1: 0}, positions={"orders": {}})
    make_round(job.place, job.log, Channels(), job.clock.now() / 1_000_000)
    job.log.close()
    with serving() as client:
        told = client.get("/api/v1/jobs/shop/alerts").json()
        missing = client.get("/api/v1/jobs/other/alerts").status_code
    assert missing == 404
    assert told["firing"] >= 1
    assert [(one["state"], one["facts"], one["built_in"]) for one in told["alerts"] if one["name"] == "lag"] == [
        ("firing", {"lag_records": 3.0}, False)
    ]
    assert "lag" in [event["alert"] for event in told["history"]]
