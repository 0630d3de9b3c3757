"""The files in deploy/ parse, name what is there, and ask only for metrics that a server exposes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from headrace.cli.commands import commands
from headrace.serve.http.metrics import exposition

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
METRIC = re.compile(r"\bheadrace_\w+")
INSTRUCTIONS = {"FROM", "RUN", "WORKDIR", "COPY", "ARG", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}


def read(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def exposed():
    """The names of all samples of a job that has every fact."""
    ends = ("in", "out", "late", "duplicate", "filtered", "dead_letter")
    counts = dict.fromkeys((*ends, "state_rows", "state_bytes", "writes", "write_seconds"), 1)
    histogram = {"buckets": [("+Inf", 1.0)], "sum": 1.0}
    moment = "2026-01-01T12:00:00+00:00"
    job = {
        "name": "shop", "state": "running", "epoch": 1, "lag": 1, "lag_seconds": 1.0, "watermark": moment,
        "steps": [{"name": "orders", "kind": "stream", **counts}], "epochs": [{"seconds": 1.0, "phases": {"plan": 0.1}}],
        "committed_at": moment, "synced_at": moment, "told_at": moment, "restarts": 1,
        "lags": [{"stream": "orders", "partition": 0, "records": 1, "seconds": 1.0}],
        "latency": histogram, "durations": histogram, "holder": {"stream": "orders", "partition": 0},
        "dead_reasons": [{"step": "orders", "reason": "no number", "records": 1}],
    }  # fmt: skip
    lines = exposition([job], {"sold": 1}, 1).decode().splitlines()
    return {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")}


def understood(arguments):
    """Whether the command line takes the arguments."""
    name, *rest = arguments
    commands().commands[name].make_context(name, list(rest))


def instructions():
    text = re.sub(r"\\\n", " ", read("Dockerfile"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(None, 1)) for line in lines]


def test_alerts_and_dashboard_ask_only_for_metrics_that_are_exposed():
    asked = {name for file in ("alerts.yml", "grafana/headrace.json") for name in METRIC.findall(read(file))}
    assert asked
    assert asked - exposed() == set()


def test_the_dashboard_shows_every_metric_of_a_server():
    shown = set(METRIC.findall(read("grafana/headrace.json")))
    assert {name for name in exposed() if not name.endswith(("_bucket", "_created"))} - shown == set()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")
def test_promtool_takes_the_alert_rules():
    checked = subprocess.run(["promtool", "check", "rules", str(DEPLOY / "alerts.yml")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("alert", yaml.safe_load(read("alerts.yml"))["groups"][0]["rules"], ids=lambda alert: alert["alert"])
def test_an_alert_has_an_expression_with_a_bound_a_severity_and_a_remedy(alert):
    assert alert["expr"].count("(") == alert["expr"].count(")")
    assert re.search(r"[><=]=? ?[\d4]", alert["expr"])
    assert alert["labels"]["severity"] in ("warning", "critical")
    assert alert["annotations"]["summary"]
    assert alert["annotations"]["remedy"]
    named = re.findall(r"headrace (\w[\w-]*)", alert["annotations"]["remedy"])
    assert set(named) <= set(commands().commands)


def test_the_panels_of_the_dashboard_have_numbers_of_their_own_and_overlap_nowhere():
    panels = json.loads(read("grafana/headrace.json"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)


def test_the_image_is_made_of_files_that_are_there_and_runs_as_a_user_without_rights():
    found = instructions()
    assert {name for name, _ in found} <= INSTRUCTIONS
    sources = [source for name, rest in found if name == "COPY" for source in rest.split()[:-1]]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    last = dict(found)
    assert last["USER"] == "10001"
    assert json.loads(last["ENTRYPOINT"]) == ["headrace"]
    understood(json.loads(last["CMD"]))
    extras = re.search(r"^ARG EXTRAS=(\S+)$", read("Dockerfile"), re.MULTILINE)
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert [extra for extra in extras[1].split(",") if f"\n{extra} = [" not in declared] == []


def test_compose_runs_commands_that_there_are_and_mounts_files_that_are_there():
    compose = yaml.safe_load(read("compose.yaml"))
    for service in compose["services"].values():
        if service["image"] == "headrace":
            understood(service["command"])
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            # The app is the user's.
            assert source in compose["volumes"] or source == "./app.py" or (DEPLOY / source).is_file()
        assert set(service.get("depends_on", ())) <= set(compose["services"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert (DEPLOY / compose["services"]["job"]["build"]["context"] / "deploy" / "Dockerfile").resolve() == DEPLOY / "Dockerfile"


def test_prometheus_reads_the_server_and_the_rules_that_compose_gives_it():
    prometheus, compose = yaml.safe_load(read("prometheus.yml")), yaml.safe_load(read("compose.yaml"))
    (scrape,) = prometheus["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": ["server:7070"]}]
    assert "server" in compose["services"]["server"]["command"]
    assert Path(scrape["authorization"]["credentials_file"]).name in compose["services"]["prometheus"]["secrets"]
    assert [rule for rule in prometheus["rule_files"] if not (DEPLOY / rule).is_file()] == []


def test_the_manifest_has_one_driver_with_time_to_stop_and_probes_that_the_server_answers():
    parts = {part["kind"]: part for part in yaml.safe_load_all(read("kubernetes.yaml"))}
    assert set(parts) == {"ConfigMap", "StatefulSet", "Service"}
    spec = parts["StatefulSet"]["spec"]
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 1
    assert pod["terminationGracePeriodSeconds"] > 60
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == parts["Service"]["spec"]["selector"]
    volumes = {volume["name"] for volume in (*pod["volumes"], *(claim["metadata"] for claim in spec["volumeClaimTemplates"]))}
    for container in pod["containers"]:
        understood(container["args"])
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    server = pod["containers"][1]
    assert server["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"
    compile(parts["ConfigMap"]["data"]["app.py"], "app.py", "exec")
    assert shlex.join(pod["containers"][0]["args"]) == "run /app/app.py"
