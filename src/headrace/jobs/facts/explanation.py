"""A plan in words, with what its job has observed so far."""

from __future__ import annotations

from headrace.core.settings import Settings
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.report import hot_keys
from headrace.log import Log
from headrace.plan.explain import Explanation, explained
from headrace.plan.plan import Plan


def explanation(plan: Plan, settings: Settings, log: Log | None) -> Explanation:
    """What each step of a plan does, and after a run its state size and its hot keys.

    A plan that could not be run is refused as a run refuses it.
    """
    place = JobDirectory(settings.home, plan.name)
    record = place.record()
    compiled(plan, 1 if record is None else record.shards)
    if record is None or log is None:
        return explained(plan)
    found: dict[str, list[str]] = {}
    for hot in hot_keys(log, plan.name):
        found.setdefault(hot.step, []).append(f"{hot.key} has {hot.share:.0%}")
    sizes = {
        kept["step"]: f"{kept['rows']:,} rows, {kept['bytes']:,} bytes"
        for kept in JobAccounting(log, plan.name, record, place.accounting).state()
    }
    return explained(plan, record.shards, {step: ", ".join(words) for step, words in found.items()}, sizes)
