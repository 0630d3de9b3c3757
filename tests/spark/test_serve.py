"""A job on Spark, and a server of its home: what the job commits is what readers and subscribers get."""

from datetime import UTC, datetime, timedelta

import pytest

import headrace as hr
from headrace.cli.commands import execute
from headrace.ops.servers.ports import free_ports
from headrace.serve.server import Server, ServeSettings
from tests.support.collector import collecting, labels

pytestmark = pytest.mark.usefixtures("spark")


def test_what_a_job_commits_is_pulled_pushed_and_queried(tmp_path):
    app = hr.App("shop", home=tmp_path)
    orders = app.stream("orders", schema="customer string, amount bigint", key="customer")
    app.view("spent", orders.group("customer", ttl=None).agg(total="sum(amount)"))

    def send(*rows):
        with app.log.producer() as producer:
            for customer, amount in rows:
                producer.send("orders", {"customer": customer, "amount": amount})
        return app.run(until="caught-up").epoch

    epoch = send(("ada", 1), ("bob", 2))
    server = Server(tmp_path, ServeSettings(port=free_ports(1)[0]))
    with server.background():
        connection = hr.connect(server.url, token=server.tokens.read)
        view = connection.view("spent")
        assert sorted(view.read(epoch=epoch).to_pylist(), key=lambda row: row["customer"]) == [
            {"customer": "ada", "total": 1},
            {"customer": "bob", "total": 2},
        ]
        changes, rows = view.changes(), {}
        while len(rows) < 2:
            change = next(changes)
            rows.update({change.row["customer"]: change.row["total"]} if change.row else {})
        epoch = send(("ada", 10), ("eve", 3))
        while rows != {"ada": 11, "bob": 2, "eve": 3}:
            change = next(changes)
            rows[change.row["customer"]] = change.row["total"]
        changes.close()
        assert connection.sql("select sum(total) as all from spent").to_pylist() == [{"all": 16}]
        assert view.read(epoch=epoch, customer="eve")["total"].to_pylist() == [3]


APP = """
import headrace as hr

app = hr.App("shop", home={home!r})
orders = app.stream("orders", schema="customer string, amount string, at timestamp", time="at", watermark=hr.bounded("0 seconds"))
spent = orders.with_columns(amount="cast(amount as bigint)")
app.view("spent", spent.window(hr.tumbling("1 minute"), by="customer").agg(total="sum(amount)"))
app.sink(orders.where("customer = 'ada'"), hr.log("copies"), name="copies")
"""


def test_a_run_measures_all_that_metrics_tell(tmp_path, monkeypatch):
    file, names, noon = tmp_path / "app.py", {}, datetime(2026, 1, 1, 12, tzinfo=UTC)
    file.write_text(APP.format(home=str(tmp_path / "home")))
    exec(file.read_text(), names)
    names["app"].log.create_topic("orders", schema="customer string, amount string, at timestamp", time="at", exist_ok=True)
    with names["app"].log.producer() as producer:
        for minute, amount in ((0, "1"), (5, "2"), (6, "none"), (0, "3")):
            producer.send("orders", {"customer": "ada", "amount": amount, "at": noon + timedelta(minutes=minute)})
    names["app"].log.close()
    with collecting() as collector:
        monkeypatch.setenv("HEADRACE_OTEL", "true")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        assert execute(["run", str(file), "--until", "caught-up"]) == 0
    found = collector.sent[-1]
    points = {name: [*metric.sum.data_points, *metric.gauge.data_points, *metric.histogram.data_points] for name, metric in found.items()}
    for name in ("headrace_dead_letters", "headrace_step_dead_letters"):
        assert sum(point.as_double for point in points[name]) == 1
    assert {labels(point)["sink"] for point in points["headrace_sink_write_seconds"]} == {"spent", "copies"}
    assert all(point.count > 0 and point.sum > 0 for point in points["headrace_sink_write_seconds"])
    assert sum(point.count for point in points["headrace_job_latency_seconds"]) == 4
    assert {labels(point)["stream"] for point in points["headrace_job_watermark_holder"]} == {"orders"}
    spent = {labels(point)["phase"]: point.as_double for point in points["headrace_job_epoch_phase_seconds"]}
    assert spent.keys() == {"look", "plan", "compute", "commit"}
    assert all(seconds > 0 for seconds in spent.values())
    step, job, partition = "headrace_step_", "headrace_job_", "headrace_partition_"
    assert points.keys() >= {
        *(f"{step}records_{fate}" for fate in ("in", "out", "late", "duplicate", "filtered")), f"{step}state_rows", f"{step}state_bytes",
        f"{partition}lag_records", f"{partition}lag_seconds", f"{job}watermark_delay_seconds", f"{job}epoch_duration_seconds",
        f"{job}restarts", f"{job}last_commit_age_seconds", f"{job}last_sync_age_seconds",
    }  # fmt: skip
