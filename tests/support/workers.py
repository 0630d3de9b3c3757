"""Workers of pytest-xdist: the tests that share one, and those that come first.

All tests that use the warm Spark session run in one worker, and all that use the shared servers in one: each is started once. Other tests
stay together by file.
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

SERVERS = frozenset({"kafka", "postgres", "redis", "opensearch"})


def group_of(item: pytest.Item) -> str:
    """The group of a test, which pytest-xdist keeps in one worker; a test that takes fixtures while it runs names its group itself."""
    if named := item.get_closest_marker("xdist_group"):
        return str(named.args[0])
    fixtures = set(getattr(item, "fixturenames", ()))
    if "spark" in fixtures:
        return "spark"
    return "servers" if fixtures & SERVERS else item.nodeid.partition("::")[0]


def rank_of(item: pytest.Item, group: str) -> int:
    """The place of a test in the run, so that the workers end at about the same time.

    Each of the two chains has a worker from the beginning. The tests with servers wait for most of their time, so what is fast runs beside
    them and uses the cores meanwhile; then come the longest of what remains.
    """
    if group in ("spark", "servers"):
        return ("spark", "servers").index(group)
    if not item.nodeid.startswith(("tests/spark", "tests/system")):
        return 2
    marker = item.get_closest_marker("timeout")
    # A browser waits most of its time, too.
    long = "browser" in getattr(item, "fixturenames", ()) or (marker is not None and marker.args[0] >= 600)
    return 3 if long else 4


def tell_groups(items: list[pytest.Item]) -> None:
    """Append each test's group to its name, where the scheduler looks for it.

    pytest-xdist does this for the marker `xdist_group`, but in a field that pytest 9.2 no longer reads (its issue 1386).
    """
    for item in items:
        item._id = type(item.id).parse(f"{item.nodeid}@{group_of(item)}")


class Groups(LoadGroupScheduling):
    """Keeps groups together, and does not try a test again in whose midst a worker died: it would end the next worker, too."""

    def remove_node(self, node: WorkerController) -> str | None:
        units = {scope: unit for scope, unit in self.assigned_work[node].items() if not all(unit.values())}
        self.assigned_work[node] = units
        running = next(((unit, name) for unit in units.values() for name, done in unit.items() if not done), None)
        if running is None:
            return super().remove_node(node)
        unit, name = running
        unit[name] = True
        super().remove_node(node)
        return name
