"""Interruptions of a job: the gap of each crash, and the accounting on both sides of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from headrace.engine.accounting import ENDS
from headrace.jobs.facts.last_run import LastRun
from headrace.serve.followed_accounting import FollowedAccounting

_COUNTS = ("in", *ENDS)


class Interruptions:
    """Remembers the accounting before each crash, for as long as a server follows it."""

    def __init__(self) -> None:
        self._before: dict[str, dict[str, int]] = {}
        self._recovered: dict[str, tuple[int, float]] = {}

    def told(self, run: LastRun | None, accounting: FollowedAccounting, streams: Collection[str]) -> list[dict[str, Any]]:
        """Each interruption: when it was, when the first epoch after it was committed, and the counts of the streams at the crash."""
        return [self._one(found, accounting, streams) for found in (run.interruptions if run is not None else ())]

    def _one(self, found: Mapping[str, Any], accounting: FollowedAccounting, streams: Collection[str]) -> dict[str, Any]:
        name, epochs = found["restarted_at"], accounting.epochs()
        after = [counts for counts in epochs if counts.epoch > found["epoch"]]
        # Whether the known epochs reach back to the crash.
        whole = bool(after) and after[0].epoch <= found["epoch"] + 1 and after[0].committed_at
        if whole and name not in self._before:
            totals = {count: sum(accounting.totals(step).counts[count] for step in streams) for count in _COUNTS}
            since = {
                count: sum(counts.steps[step][count] for counts in after for step in streams if step in counts.steps) for count in _COUNTS
            }
            self._before[name] = {count: totals[count] - since[count] for count in _COUNTS}
            assert after[0].committed_at is not None
            self._recovered[name] = (after[0].epoch, after[0].committed_at)
        epoch, recovered = self._recovered.get(name, (None, None))
        return {
            **found, "before": self._before.get(name), "recovered_epoch": epoch,
            "recovered_at": None if recovered is None else datetime.fromtimestamp(recovered, UTC).isoformat(),
        }  # fmt: skip
