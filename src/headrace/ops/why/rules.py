"""All rules, in the order in which a person would ask: does it run, is there input, does time move, what is the fate of the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.ops.why.arrival import no_input
from headrace.ops.why.facts import JobFacts
from headrace.ops.why.fate import dead_letters, filtered, hot_key
from headrace.ops.why.finding import Finding
from headrace.ops.why.keys import wrong_key
from headrace.ops.why.lateness import late
from headrace.ops.why.life import complete, not_running, starting
from headrace.ops.why.sinks import slow_sink
from headrace.ops.why.time import watermark_held, window_open

RULES: tuple[Callable[[JobFacts], Iterator[Finding]], ...] = (
    not_running, starting, complete, no_input, watermark_held, window_open, late, filtered, dead_letters, slow_sink, hot_key,
    wrong_key,
)  # fmt: skip


def findings(facts: JobFacts) -> list[Finding]:
    """The findings of the rules; what is wrong comes first."""
    found = [finding for rule in RULES for finding in rule(facts)]
    return sorted(found, key=lambda finding: not finding.wrong)


def watched() -> list[dict[str, str]]:
    """Every rule that needs no question, by the name of its findings, and what it looks for."""
    named: dict[Callable[[JobFacts], Iterator[Finding]], str] = {filtered: "filtered out", complete: "input complete"}
    return [
        {"rule": named.get(rule, rule.__name__.replace("_", " ")), "watches": (rule.__doc__ or "").strip().splitlines()[0]}
        for rule in RULES
        if rule is not wrong_key
    ]
