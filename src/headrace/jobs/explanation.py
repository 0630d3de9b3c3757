"""A plan in words, with what its job has found so far."""

from __future__ import annotations

from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory
from headrace.jobs.report import hot_keys, state
from headrace.log import Log
from headrace.operators.compiler import compiled
from headrace.plan.explain import Explanation, explained
from headrace.plan.plan import Plan


def explanation(plan: Plan, settings: Settings, log: Log) -> Explanation:
    """What each step of a plan does, and after a run how much it keeps and which of its keys are hot.

    A plan that could not be run is refused as a run refuses it.
    """
    record = JobDirectory(settings.home, plan.name).record()
    compiled(plan, 1 if record is None else record.shards)
    if record is None:
        return explained(plan)
    found: dict[str, list[str]] = {}
    for hot in hot_keys(log, plan.name):
        found.setdefault(hot.step, []).append(f"{hot.key} has {hot.share:.0%}")
    sizes = {kept["step"]: f"{kept['rows']:,} rows, {kept['bytes']:,} bytes" for kept in state(log, plan.name, record)}
    return explained(plan, record.shards, {step: ", ".join(words) for step, words in found.items()}, sizes)
