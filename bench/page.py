"""Frames a second of the page: 200 nodes, and a view that changes 2,000 times a second, in a headless browser without a graphics card.

python bench/page.py [--quick]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from headrace.jobs.facts.description import DescribedOutput, DescribedStep, JobDescription
from headrace.ops.servers.ports import free_ports
from headrace.serve.server import Server, ServeSettings
from headrace.testing.written import WrittenView, accounted
from tests.support.browser import Looker, looking

NODES, UPDATES, EPOCHS = 200, 2_000, 10
KEYS = 1_000
_FRAMES = """
const [seconds, done] = arguments;
const frames = [], began = performance.now();
function frame(now) {
  frames.push(now);
  if (now - began < seconds * 1000) requestAnimationFrame(frame);
  else done(frames);
}
requestAnimationFrame(frame);
"""


def described(view: WrittenView) -> list[str]:
    """Let the job have 200 nodes: streams with chains of steps behind them; returns the names of all but the view."""
    names, steps = list[str](), list[DescribedStep]()
    for place in range(NODES - 1):
        chain, depth = divmod(place, 6)
        before = () if depth == 0 else (names[-1],)
        name = f"stream{chain}" if depth == 0 else f"{names[-1]}.step"
        names.append(name)
        steps.append(DescribedStep(name, "step" if before else "stream", "does something", before, "url string", "", ""))
    output = DescribedOutput(view.name, "view", "view by url", names[-1], "url string, views bigint", ("url",), view.name)
    JobDescription(view.place.name, tuple(steps), (output,)).write(view.place.path)
    return names


def writing(view: WrittenView, names: list[str], ended: threading.Event) -> None:
    """Change the view 2,000 times a second, in ten epochs, each with an accounting of all nodes."""
    number = 0
    while not ended.is_set():
        began, number = time.monotonic(), number + 1
        each = UPDATES // EPOCHS
        rows = [{"url": f"/page/{(number * each + place) % KEYS}", "views": number * each + place} for place in range(each)]
        counts: dict[str, Any] = {name: {"taken": each, "out": each} for name in [*names, view.name]}
        accounted(view, view.number + 1, None, **counts)
        view.epoch(rows)
        ended.wait(max(0.0, 1 / EPOCHS - (time.monotonic() - began)))


def frames(looker: Looker, address: str, seconds: float) -> dict[str, float]:
    """Frames a second of a screen, and the longest time between two frames."""
    looker.driver.get(address)
    looker.sees("/page/")
    seen: list[float] = looker.driver.execute_async_script(_FRAMES, seconds)
    gaps = sorted(after - before for before, after in itertools.pairwise(seen))
    return {
        "frames_per_second": round(1000 * len(gaps) / (seen[-1] - seen[0]), 1),
        "p99_gap_ms": round(gaps[int(len(gaps) * 0.99)], 1),
        "longest_gap_ms": round(gaps[-1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    seconds = 8.0 if parser.parse_args().quick else 30.0
    with tempfile.TemporaryDirectory() as folder:
        view = WrittenView(Path(folder) / "home", "url string, views bigint", ["url"])
        names, ended = described(view), threading.Event()
        view.epoch([])
        server = Server(view.home, ServeSettings(port=free_ports(1)[0]))
        writer = threading.Thread(target=writing, args=(view, names, ended))
        writer.start()
        try:
            with server.background(), looking(Path(folder) / "profile") as looker:
                looker.open(f"{server.url}/?token={server.tokens.read}")
                looker.until(lambda: len(looker.all(".node")) == NODES)
                began, first = time.monotonic(), view.number
                found = {
                    screen: frames(looker, f"{server.url}/#/{view.place.name}/{place}", seconds)
                    for screen, place in (("pipeline", f"pipeline/{view.name}"), ("views", f"views/{view.name}"))
                }
                rate = (view.number - first) * UPDATES / EPOCHS / (time.monotonic() - began)
        finally:
            ended.set()
            writer.join()
        view.close()
    load = round(os.getloadavg()[0], 1)
    targets = {f"{screen}, frames a second": {"got": told["frames_per_second"], "at_least": 30} for screen, told in found.items()}
    print(
        json.dumps(
            {"bench": "page", "correct": True, "targets": targets, "screens": found, "updates_per_second": round(rate), "load": load}
        )
    )


if __name__ == "__main__":
    main()
