"""A canary in every field that holds a credential is in no output: answers, metrics, logs, errors, explanations, support bundle."""

from __future__ import annotations

import json
import logging
import os
import zipfile
from dataclasses import asdict, fields

import psycopg
import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.cli.commands import execute
from headrace.core.clock import SystemClock
from headrace.core.errors import HeadraceError
from headrace.core.settings import Settings
from headrace.jobs.directory import Record
from headrace.jobs.facts.description import description_of
from headrace.jobs.facts.job_log import own_log
from headrace.jobs.facts.last_run import recorded
from headrace.plan.explain import explained, identity

CANARY = "c4nary5ecret"


def canary(place):
    return f"{CANARY}-{place}"


def declared():
    """An app whose every source and sink has a credential."""
    app = Declaration("shop")
    settings = {"sasl.username": "ada", "sasl.password": canary("sasl"), "ssl.key.password": canary("ssl"), "ssl.key.pem": canary("pem")}
    orders = app.stream("orders", "url string, n bigint", source=hr.kafka("orders", servers="broker:9092", settings=settings))
    counted = orders.group("url", ttl=None).agg(n="count(*)")
    app.view("per_url", counted)
    app.sink(counted, hr.postgres("per_url", dsn=f"postgresql://ada:{canary('postgres')}@127.0.0.1:1/shop"), name="table")
    app.sink(counted, hr.redis("per_url", url=f"redis://:{canary('redis')}@127.0.0.1:1"), name="keys")
    headers = {"Authorization": f"Bearer {canary('header')}", "X-Api-Key": canary("key")}
    app.sink(orders, hr.http("http://127.0.0.1:1/hook", headers=headers), name="hook")
    app.sink(counted, hr.search("http://127.0.0.1:1", index="urls", headers=headers), name="index")
    app.sink(counted, hr.kafka("counted", servers="broker:9092", settings=settings), name="topic")
    return app


def fail(place, text):
    with recorded(place, SystemClock()), own_log(place, SystemClock(), as_json=True):
        logging.getLogger("headrace.connectors").error("sent %s", f"Authorization: Bearer {canary('header')}")
        raise psycopg.OperationalError(text)


@pytest.fixture
def shop(home, totals, monkeypatch):
    """A job of that app that failed with an error of another system, which tells all it knows."""
    for name in ("DATABASE_PASSWORD", "API_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, canary(name.lower()))
    plan, place = declared().plan(), totals.place.__class__(home, "shop")
    place.path.mkdir(parents=True)
    description_of(plan).write(place.path)
    place.record_file.write_text(json.dumps(asdict(Record("job-2", 2, 1, identity(plan)))))
    secret = canary("postgres")
    for text in (f"no route to postgresql://ada:{secret}@db/shop", f"password={secret} is wrong", os.environ["API_TOKEN"]):
        with pytest.raises(psycopg.OperationalError):
            fail(place, text)
    totals.epoch([{"url": "/a", "user": "ada", "views": 1}])
    return place


def test_no_answer_and_no_metric_has_a_canary_or_a_token(shop, serving, totals):
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        document = client.get("/openapi.json").json()
        tokens = asdict(client.server.tokens).values()
        told = []
        for path, methods in document["paths"].items():
            for name in ("shop", "totals", "totals-job", "orders", CANARY):
                for method in methods:
                    named = path.replace("{name}", name).replace("{key}", "%2Fa")
                    answer = client.request(method, named, **({"json": {"query": "select * from totals"}} if method == "post" else {}))
                    told.append(answer.text.replace(CANARY, "") if name == CANARY else answer.text)
    assert len(told) > 100
    assert any('"shop"' in text for text in told)
    assert not [text for text in told if CANARY in text or any(token in text for token in tokens)]


def test_no_explanation_description_or_representation_has_a_canary():
    plan = declared().plan()
    said = [str(explained(plan)), identity(plan), repr(plan), repr(plan.outputs), repr(plan.sources), str(asdict(description_of(plan)))]
    assert not [text for text in said if CANARY in text]


def test_no_log_and_no_record_of_a_run_has_a_canary(shop, totals, capsys):
    assert execute(["logs", "shop", "--home", str(totals.home)]) == 0
    execute(["status", "shop", "--home", str(totals.home), "--json"])
    execute(["why", "shop", "--home", str(totals.home)])
    shown = capsys.readouterr()
    texts = [file.read_text(errors="replace") for file in shop.path.rglob("*") if file.is_file()]
    assert "OperationalError" in shown.out + shown.err + "".join(texts)
    assert not [text for text in (*texts, shown.out, shown.err) if CANARY in text]
    assert all(json.loads(line)["level"] in ("info", "error") for line in shop.own_log.read_text().splitlines())


def test_no_support_bundle_has_a_canary(shop, totals, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_ALERT_WEBHOOK", f"https://hooks.example.org/{canary('webhook')}")
    monkeypatch.setenv("HEADRACE_ALERT_MAIL", f"smtp://ada:{canary('mail')}@127.0.0.1/?from=a@b&to=c@d")
    target = tmp_path / "bundle.zip"
    assert execute(["support-bundle", "shop", "--home", str(totals.home), "-o", str(target)]) == 0
    with zipfile.ZipFile(target) as bundle:
        texts = [bundle.read(name).decode() for name in bundle.namelist()]
    assert len(texts) >= 4
    assert not [text for text in texts if CANARY in text]


def test_settings_that_are_secret_show_nowhere_and_wrong_ones_are_refused_without_them():
    settings = Settings(alert_webhook=hr.Secret(canary("webhook")), alert_mail=hr.Secret(canary("mail")))
    assert CANARY not in f"{settings} {settings!r}"
    assert {found.name for found in fields(Settings) if "Secret" in str(found.type)} == {"alert_webhook", "alert_mail"}
    for make in (
        lambda: hr.http(f"https://ada:{canary('url')}@example.org/"),
        lambda: hr.kafka("t", servers="b:1", settings={"sasl.password": canary("sasl")}, start="never"),
        lambda: hr.postgres("", dsn=canary("dsn")),
        lambda: hr.redis("t", url=canary("url"), form="no"),
    ):
        with pytest.raises(HeadraceError) as refused:
            make()
        assert CANARY not in str(refused.value)
