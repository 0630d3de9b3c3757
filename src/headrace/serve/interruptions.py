"""Interruptions of a job: the gap of each crash, and the accounting on both sides of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headrace.engine.accounting import ENDS
from headrace.jobs.facts.last_run import LastRun
from headrace.serve.followed_accounting import FollowedAccounting

_COUNTS = ("in", *ENDS)


class Interruptions:
    """Computes the accounting before each crash once: its entries are removed after some thousand epochs."""

    def __init__(self) -> None:
        self._before: dict[str, dict[str, int]] = {}

    def told(
        self, run: LastRun | None, epoch: int, accounting: FollowedAccounting, streams: Collection[str]
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Each interruption: when it was, whether and when an epoch was committed after it, and the counts of the streams at the crash."""
        return [self._one(found, epoch, accounting, streams) for found in (run.interruptions if run is not None else ())]

    def _one(self, found: Mapping[str, Any], epoch: int, accounting: FollowedAccounting, streams: Collection[str]) -> dict[str, Any]:
        name, recovered = found["restarted_at"], epoch > found["epoch"]
        if recovered and name not in self._before and (counts := accounting.up_to(found["epoch"], streams)) is not None:
            self._before[name] = {count: counts[count] for count in _COUNTS}
        return {"recovered_epoch": None, "recovered_at": None, **found, "recovered": recovered, "before": self._before.get(name)}
