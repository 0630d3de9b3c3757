"""A job that only writes and a server, each a process of its own that can be killed at any moment."""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

from headrace.core.columns.schema import schema
from headrace.log import Log
from headrace.serve.http.limits import ServerLimits
from headrace.serve.server import Server, ServeSettings
from headrace.testing.written import WrittenView

Rows = dict[str, int]
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": 2048}
COLUMNS, KEY = "url string, views bigint", ("url",)
# Children of a server that has loaded everything: a process costs a fork.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


class Epochs:
    """The epochs of a view, decided by a seed alone: a job that repeats one writes the same. Subscribers in several threads share it."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        # The draws of two threads would mix.
        self._growing = threading.Lock()
        self._changes: list[tuple[Rows, list[str]]] = []
        self._tables: list[Rows] = [{}]
        self._first = 2_500 if seed % 4 == 0 else 5

    def changes(self, epoch: int) -> tuple[Rows, list[str]]:
        self._grow(epoch)
        return self._changes[epoch - 1]

    def table(self, epoch: int) -> Rows:
        """The rows of the view after an epoch."""
        self._grow(epoch)
        return self._tables[epoch]

    def _grow(self, epoch: int) -> None:
        with self._growing:
            while len(self._changes) < epoch:
                draw, before = self._random, self._tables[-1]
                many = draw.randrange(8) if self._changes else self._first
                urls = range(many) if not self._changes else [draw.randrange(12) for _ in range(many)]
                changed = {f"/{url}": draw.randrange(1_000) for url in urls}
                gone = [url for url in list(before)[:12] if url not in changed and draw.random() < 0.15]
                self._changes.append((changed, gone))
                self._tables.append({url: views for url, views in {**before, **changed}.items() if url not in gone})


def write_epochs(home: Path, seed: int, last: int, tasks: int) -> None:
    """Go on with the job up to an epoch, as the next run of a killed job does; now and then the topic is compacted."""
    epochs, draw = Epochs(seed), Random()
    with Log(home / "log") as log:
        # Small segments: compaction leaves the last one alone.
        log.create_topic("totals", partitions=tasks, schema=schema(COLUMNS), config=COMPACTED, exist_ok=True)
    view = WrittenView(home, COLUMNS, KEY, tasks=tasks)
    for epoch in range(view.number + 1, last + 1):
        changed, gone = epochs.changes(epoch)
        view.epoch([_row(url, views) for url, views in changed.items()], [_row(url, 0) for url in gone])
        if draw.random() < 0.2:
            view.log.maintain(view.name, force=True)
    view.close()


def serve(home: Path, port: int, names: tuple[str, ...], limits: ServerLimits | None = None) -> None:
    """Serve a home until the process ends."""
    Server(home, ServeSettings(port=port, host_names=names, limits=limits or ServerLimits())).run()


def started(target: Any, *arguments: Any) -> BaseProcess:
    process = FORKS.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def killed(process: BaseProcess) -> None:
    """End a process with SIGKILL."""
    process.kill()
    process.join()


def _row(url: str, views: int) -> dict[str, Any]:
    return {"url": url, "views": views}
