"""Push is exact under faults: connections are cut, a server and a job are killed, and a subscriber's table is the view at every epoch."""

from __future__ import annotations

import threading
from random import Random

import pytest

from headrace.jobs.directory import JobDirectory
from headrace.ops.servers.ports import free_ports
from headrace.serve.http.tokens import tokens_in
from headrace.serve.server import DIRECTORY
from tests.support.cutting import Cutter
from tests.support.examples import seeds, soaked
from tests.support.lives import Life
from tests.support.served_epochs import Epochs, killed, serve, started, write_epochs
from tests.support.subscribers import Subscriber, over_events, over_socket

RUNS, BLOCKS = soaked((200, 100), (12, 6))


class Run:
    """One life of a view, with a server and two subscribers behind connections that are cut."""

    def __init__(self, home, seed):
        self.home, self.seed, self.draw = home, seed, Random(seed)
        self.tasks = self.draw.choice([1, 3])
        self.truth = Epochs(seed)
        self.place = JobDirectory(home, "totals-job")
        self.port = free_ports(1)[0]
        self.cutter = Cutter(self.port, Random(seed + 1))
        self.names = (f"127.0.0.1:{self.cutter.port}",)
        self.ended = threading.Event()
        self.kills = 0

    def live(self):
        self._write(self.draw.randrange(1, 3))
        self.server = started(serve, self.home, self.port, self.names)
        url, token = f"http://127.0.0.1:{self.cutter.port}", tokens_in(self.home / DIRECTORY).read
        subscribers = [
            Subscriber(messages, self.truth.table) for messages in (over_events(url, token), over_socket(url, token, self.ended))
        ]
        for subscriber in subscribers:
            subscriber.start()
        try:
            last = self.place.committed_epoch()
            for _ in range(self.draw.randrange(2, 5)):
                last += self.draw.randrange(1, 12)
                self._write(last)
                if self.draw.random() < 0.3:
                    self.cutter.cut_all()
            for subscriber in subscribers:
                subscriber.ends_at(last)
        finally:
            self.ended.set()
            killed(self.server)
            self.cutter.close()
        return subscribers

    def _write(self, last):
        """Let the job come to an epoch; it and the server may be killed on the way, at any moment."""
        while self.place.committed_epoch() < last:
            writer = started(write_epochs, self.home, self.seed, last, self.tasks)
            if hasattr(self, "server") and self.draw.random() < 0.4:
                writer.join(self.draw.uniform(0, 0.3))
                killed(self.server)
                self.kills += 1
                self.server = started(serve, self.home, self.port, self.names)
            if self.draw.random() < 0.4:
                writer.join(self.draw.uniform(0, 0.3))
                killed(writer)
                self.kills += 1
            writer.join()


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_table_folded_over_cuts_and_kills_equals_the_view_at_every_epoch(tmp_path, block):
    faults = 0
    for seed in seeds(RUNS // BLOCKS, block):
        run = Run(tmp_path / str(seed), seed)
        subscribers = run.live()
        assert all(subscriber.compared for subscriber in subscribers)
        faults += run.kills + run.cutter.cuts
    assert faults


APP = """
import headrace as hr

app = hr.App("shop", home={home!r})
clicks = app.stream("clicks", schema="url string", key="url")
app.view("per_url", clicks.group("url", ttl=None).agg(n="count(*)"))
"""


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("seed", seeds(soaked(8, 1)))
def test_a_table_folded_while_a_job_on_spark_is_killed_equals_the_view(tmp_path, seed):
    draw, file, names = Random(seed), tmp_path / "app.py", {}
    file.write_text(APP.format(home=str(tmp_path / "home")))
    exec(file.read_text(), names)
    app, port = names["app"], free_ports(1)[0]
    life = Life(file, lambda urls: _send(app, urls), seed)
    life.live(["caught-up"])
    server = started(serve, tmp_path / "home", port, ())
    token = tokens_in(tmp_path / "home" / DIRECTORY).read
    subscriber = Subscriber(over_events(f"http://127.0.0.1:{port}", token, "per_url"), None)
    subscriber.start()
    try:
        # A killed run has a Spark of its own, which takes longer to start than all others take together.
        life.live(soaked([draw.choice(["caught-up", "SIGKILL"]), "SIGKILL"], ["SIGKILL"]))
        killed(server)
        server = started(serve, tmp_path / "home", port, ())
        life.grow()
        life.live(soaked(["SIGKILL"], ["caught-up"]))
        subscriber.ends_at(JobDirectory(tmp_path / "home", "shop").committed_epoch())
    finally:
        killed(server)
    assert subscriber.table.rows == dict(life.sent)


def _send(app, urls):
    with app.log.producer() as producer:
        for url in urls:
            producer.send("clicks", {"url": url})
