"""Alerts: a condition that holds is told once and resolved once, by log, webhook and mail, whatever is restarted meanwhile."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import socketserver
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.errors import JobError, PlanError, SettingsError
from headrace.core.secret import Secret
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.description import read_description
from headrace.log import Log
from headrace.ops.alerts.channels import Channels
from headrace.ops.alerts.ledger import ledger_of
from headrace.ops.alerts.watch import make_round, told
from headrace.plan.alerts import BUILT_IN, FACTS, Alert
from tests.support.http_service import HttpService, served
from tests.support.mail_server import MailServer
from tests.support.troubled import TroubledJob

MANY_LATE = {"condition": "late_share > 0.01", "for_": "5 minutes", "message": "look at the clocks", "name": "late records"}

BEHIND = {"condition": "lag_records > 5", "message": "it is behind", "name": "lag"}


class Webhook(HttpService):
    """Answers 503 while `away`."""

    away = False
    requests = 0

    def answer(self, headers, record):
        self.requests += 1
        return 503 if self.away else super().answer(headers, record)


@contextmanager
def listening(server):
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Watched:
    """A job whose alerts are judged in rounds; each round opens the log anew, as another process would."""

    def __init__(self, home, channels=None, alerts=(MANY_LATE,)):
        self.job = TroubledJob(home, alerts=alerts)
        self.channels = channels or Channels()
        self.job.send(1)
        self.job.commit({0: 0, 1: 0})
        self._touch()
        # As its holder, else it counts as killed.
        self.running = self.job.place.held()
        self.running.__enter__()

    def watch(self, seconds):
        """Rounds as a watch makes them, for some time."""
        for _ in range(seconds // 50):
            self.round(50)
        return self.events()

    def round(self, seconds=0):
        self.job.clock.advance(timedelta(seconds=seconds))
        with Log(self.job.home / "log", clock=self.job.clock) as log:
            make_round(JobDirectory(self.job.home, "shop"), log, self.channels, self.job.clock.now() / 1_000_000)
        return self.events()

    def events(self):
        return [(event["alert"], event["state"]) for event in ledger_of(self.job.place).history]

    def of(self, alert):
        """The states that were told of one alert."""
        return [state for name, state in self.events() if name == alert]

    def _touch(self):
        now = self.job.clock.now() / 1_000_000
        os.utime(self.job.place.checkpoint / "commits" / "0", (now, now))


@pytest.fixture
def watched(tmp_path):
    opened = []

    def make(*given, **options):
        opened.append(Watched(tmp_path / "home", *given, **options))
        return opened[-1]

    yield make
    for one in opened:
        one.running.__exit__(None, None, None)
        one.job.log.close()


def test_an_alert_fires_once_it_has_held_for_its_time_and_is_resolved_once(watched):
    shop = watched()
    shop.round()
    for _ in range(3):
        shop.job.account("orders", taken=100, out=50, late=50)
        assert shop.watch(100) == []
    assert told(shop.job.place, read_description(shop.job.place.path))["alerts"][0]["state"] == "pending"
    shop.job.account("orders", taken=100, out=50, late=50)
    assert shop.watch(100) == [("late records", "firing")]
    assert shop.round(10) == [("late records", "firing")]
    assert shop.round(400)[-1] == ("late records", "resolved")
    assert shop.round(10).count(("late records", "resolved")) == 1


def test_an_alert_that_fires_is_not_told_again_by_the_next_process_and_resolved_by_it(watched):
    with served(Webhook("/hook")) as hook:
        shop = watched(Channels(webhook=Secret(hook.url)), alerts=[BEHIND])
        shop.job.send(10)
        for _ in range(4):
            # Every round is a process of its own.
            shop.round(5)
        shop.job.commit({0: 0, 1: 0})
        for _ in range(3):
            shop.round(5)
    assert [(event["alert"], event["state"], event["job"]) for event in hook.taken.values()] == [
        ("lag", "firing", "shop"),
        ("lag", "resolved", "shop"),
    ]
    assert hook.requests == 2
    assert next(iter(hook.taken.values()))["facts"] == {"lag_records": 10.0}


def test_an_alert_that_is_declared_no_more_is_resolved_once_and_forgotten(watched):
    shop = watched(alerts=[BEHIND, {**BEHIND, "name": "soon", "for_": "1 hour"}])
    shop.job.send(10)
    shop.round(5)
    declared = shop.job.place.path / "description.json"
    before = declared.read_text()
    declared.write_text(json.dumps({**json.loads(before), "alerts": []}))
    shop.round(5)
    assert shop.round(5) == [("lag", "firing"), ("lag", "resolved")]
    # Declared again, it has to hold for its whole time anew.
    declared.write_text(before)
    shop.watch(3_600)
    assert (shop.of("lag"), shop.of("soon")) == (["firing", "resolved", "firing"], [])
    assert ledger_of(shop.job.place).untold == []


def test_a_condition_that_held_before_a_time_without_a_watch_has_to_hold_anew(watched):
    shop = watched(alerts=[{**BEHIND, "for_": "5 minutes"}])
    shop.job.send(10)
    shop.watch(200)
    # Nobody knows how it was meanwhile: the job was stopped, and there was no server.
    shop.round(3_600)
    shop.watch(250)
    assert shop.of("lag") == []
    shop.watch(50)
    assert shop.of("lag") == ["firing"]
    # An alert that fires goes on after such a time.
    shop.round(3_600)
    assert shop.of("lag") == ["firing"]


def test_a_restart_of_the_watch_does_not_begin_the_time_of_a_condition_anew(watched):
    shop = watched(alerts=[{**BEHIND, "for_": "5 minutes"}])
    shop.job.send(10)
    for _ in range(6):
        assert shop.round(59) == []
    assert shop.round(5) == [("lag", "firing")]


def test_an_event_for_a_channel_that_nobody_has_any_more_leaves_the_ledger_after_a_day(watched, caplog):
    with served(Webhook("/hook")) as hook:
        shop = watched(Channels(webhook=Secret(hook.url)), alerts=[BEHIND])
        hook.away = True
        shop.job.send(10)
        shop.round(5)
        shop.channels = Channels()
        shop.round(86_000)
        # Another process may still have it.
        assert [event["to"] for event in ledger_of(shop.job.place).untold] == [["webhook"]]
        shop.round(1_000)
    assert ledger_of(shop.job.place).untold == []
    assert "alert 'lag' of job 'shop' was not told by webhook" in caplog.text
    assert hook.taken == {}


def test_an_event_for_a_channel_that_is_away_for_days_is_told_when_it_is_back(watched):
    with served(Webhook("/hook")) as hook:
        shop = watched(Channels(webhook=Secret(hook.url)), alerts=[BEHIND])
        hook.away = True
        shop.job.send(10)
        shop.round(5)
        shop.round(200_000)
        hook.away = False
        shop.round(5)
    assert len(hook.taken) == 1
    assert ledger_of(shop.job.place).untold == []


def test_what_a_webhook_did_not_take_is_told_later_under_the_same_id(watched):
    with served(Webhook("/hook")) as hook:
        shop = watched(Channels(webhook=Secret(hook.url)), alerts=[BEHIND])
        hook.away = True
        shop.job.send(10)
        shop.round(5)
        shop.round(5)
        assert hook.taken == {}
        hook.away = False
        shop.round(5)
        shop.round(5)
    assert len(hook.taken) == 1
    assert hook.requests == 3
    assert ledger_of(shop.job.place).untold == []


def test_an_event_that_was_written_and_not_told_before_a_kill_is_told_by_the_next_process(watched):
    with served(Webhook("/hook")) as hook:
        shop = watched(Channels(webhook=Secret(hook.url)), alerts=[BEHIND])
        shop.job.send(10)
        hook.away = True
        shop.round(5)
        kept = shop.job.place.path / "alerts.json"
        shutil.copy(kept, kept.with_suffix(".before"))
        hook.away = False
        shop.round(5)
        # A kill between the telling and the note of it.
        shutil.copy(kept.with_suffix(".before"), kept)
        shop.round(5)
    assert len(hook.taken) == 1


class Babbler(socketserver.ThreadingTCPServer):
    """Answers what is no HTTP."""

    daemon_threads = True

    class RequestHandlerClass(socketserver.StreamRequestHandler):
        def handle(self):
            self.request.recv(65_536)
            self.wfile.write(b"what?\r\n\r\n")

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.RequestHandlerClass)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"


def test_a_webhook_that_answers_nonsense_or_is_no_address_and_a_name_of_two_lines_are_tried_again(watched, caplog):
    with listening(Babbler()) as hook, listening(MailServer()) as mail:
        shop = watched(Channels(webhook=Secret(hook.url)), alerts=[{**BEHIND, "name": "lag\nof all"}])
        shop.job.send(10)
        shop.round(5)
        shop.channels = Channels(Secret("http://127.0.0.1:no/"), Secret(f"smtp://127.0.0.1:{mail.port}/?from=a@b.example&to=c@d.example"))
        shop.round(5)
        shop.job.commit({0: 0, 1: 0})
        shop.round(5)
    assert caplog.text.count("the webhook of alerts cannot be reached") == 4
    assert "Subject: [headrace] shop: lag of all resolved" in mail.messages[0]


def test_a_channel_that_hangs_is_asked_once_a_round_and_conditions_are_judged(watched):
    with socket.create_server(("127.0.0.1", 0), backlog=8) as silent:
        silent.setblocking(False)
        channels = Channels(webhook=Secret(f"http://127.0.0.1:{silent.getsockname()[1]}/"), patience=0.02)
        shop = watched(channels, alerts=[{**BEHIND, "name": f"lag {number}"} for number in range(5)])
        shop.job.send(10)
        shop.round(5)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
        assert len(ledger_of(shop.job.place).untold) == 5


def test_alerts_are_mailed(watched):
    with listening(MailServer()) as server:
        address = Secret(f"smtp://127.0.0.1:{server.port}/?from=jobs@example.org&to=team@example.org&to=boss@example.org")
        shop = watched(Channels(mail=address), alerts=[BEHIND])
        shop.job.send(10)
        server.refuses = True
        shop.round(5)
        server.refuses = False
        shop.round(5)
        shop.job.commit({0: 0, 1: 0})
        shop.round(5)
    subjects = [line for text in server.messages for line in text.splitlines() if line.startswith("Subject")]
    assert subjects == ["Subject: [headrace] shop: lag firing", "Subject: [headrace] shop: lag resolved"]
    assert "To: team@example.org, boss@example.org" in server.messages[0]
    assert "it is behind" in server.messages[0]


def test_alerts_are_logged(watched, caplog):
    shop = watched(alerts=[BEHIND])
    shop.job.send(10)
    with caplog.at_level(logging.INFO, logger="headrace.alerts"):
        shop.round(5)
        shop.job.commit({0: 0, 1: 0})
        shop.round(5)
    assert [record.getMessage() for record in caplog.records] == [
        "alert 'lag' of job 'shop': it is behind (lag_records 10)",
        "alert 'lag' of job 'shop' has ended (lag_records 0)",
    ]


def built_in(name):
    """How each built-in alert is provoked."""

    def failed(shop):
        shop.running.__exit__(None, None, None)
        shop.job.recorder.end(JobError("the disk is full"))
        shop.running = shop.job.log.__class__(shop.job.home / "log")
        shop.round(5)

    def lag(shop):
        for _ in range(18):
            shop.job.send(2_000)
            shop.round(60)

    def held(shop):
        shop.job.commit({0: 0, 1: 90})
        for _ in range(8):
            shop.round(60)

    def late(shop):
        for _ in range(8):
            shop.job.account("orders", taken=100, out=50, late=50)
            shop.round(60)

    def dead(shop):
        shop.job.account("orders", taken=10, out=9, dead_letter=1)
        shop.round(5)

    def commit(shop):
        shop.job.send(1)
        for _ in range(8):
            shop.round(60)

    return {"failed": failed, "lag grows": lag, "watermark held": held, "late records": late, "dead letters": dead, "old commit": commit}[
        name
    ]


@pytest.mark.parametrize("name", ["failed", "lag grows", "watermark held", "late records", "dead letters", "old commit"])
def test_a_built_in_alert_fires_when_its_trouble_comes(watched, name):
    shop = watched(alerts=())
    shop.round()
    assert shop.events() == []
    built_in(name)(shop)
    assert (name, "firing") in shop.events()


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("state grows", {"state_bytes": 2e8, "state_growth": 0.6}),
        ("long epochs", {"epoch_seconds": 61.0}),
    ],
)
def test_the_other_built_in_alerts_hold_where_their_facts_say_so(name, facts):
    (alert,) = (one for one in BUILT_IN if one.name == name)
    assert alert.holds({**dict.fromkeys(FACTS, 0.0), **facts})
    assert not alert.holds(dict.fromkeys(FACTS, 0.0))
    assert not alert.holds({})


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("late_shar > 1", "late_share"),
        ("late_share", "compares nothing"),
        ("late_share > ", "not a condition"),
        ("__import__('os').system('id') > 0", "call"),
        ("late_share.real > 0", "attribute"),
        ("late_share > 'x'", "constant"),
        ("[1] > 0", "list"),
        ("late_share > 0 if lag_records else 1", "ifexp"),
    ],
)
def test_a_condition_that_means_nothing_is_refused_when_it_is_declared(condition, said):
    with pytest.raises(PlanError, match=said):
        Declaration("shop").alert(condition, message="m")


def test_conditions_compare_compute_and_combine():
    facts = {"lag_records": 10.0, "in_rate": 2.0, "late_share": 0.5}
    for condition, expected in (
        ("lag_records / in_rate > 4", True),
        ("lag_records / in_rate > 4 and late_share < 0.5", False),
        ("not late_share < 0.5 or lag_records == 0", True),
        ("0 < late_share <= 0.5", True),
        ("-lag_records + 11 * 1 - 1 >= 0", True),
        ("lag_records / (in_rate - 2) > 1", False),
        ("commit_age > 1", False),
    ):
        assert Alert("a", condition, timedelta(0), "m").holds(facts) is expected, condition


def test_the_alerts_of_an_app_are_part_of_its_description_and_replace_built_in_ones(tmp_path):
    shop = TroubledJob(tmp_path / "home", alerts=[{"condition": "dead_letters > 100", "message": "many", "name": "dead letters"}])
    shop.log.close()
    found = told(shop.place, read_description(shop.place.path))
    named = {alert["name"]: alert for alert in found["alerts"]}
    assert named["dead letters"]["condition"] == "dead_letters > 100"
    assert not named["dead letters"]["built_in"]
    assert named["late records"]["built_in"]
    assert len(named) == len(BUILT_IN)


def test_channels_that_are_no_addresses_are_refused_without_showing_them():
    for wrong in ({"webhook": Secret("ftp://s3same")}, {"mail": Secret("smtp://s3same")}, {"mail": Secret("http://s3same/?from=a&to=b")}):
        with pytest.raises(SettingsError) as refused:
            Channels(**wrong)
        assert "s3same" not in str(refused.value)


def test_two_alerts_of_one_name_are_refused():
    app = hr.App.__mro__[1]("shop")
    app.alert("lag_records > 1", message="m")
    with pytest.raises(PlanError, match="two alerts"):
        app.alert("lag_records > 1", message="m")


def test_a_ledger_is_plain_json(watched):
    shop = watched()
    shop.round(5)
    assert set(json.loads((shop.job.place.path / "alerts.json").read_text())) == {
        "holding", "firing", "untold", "history", "samples", "job", "judged_at",
    }  # fmt: skip
