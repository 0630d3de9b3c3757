"""Rules about the fate of records, from the accounting: filtered, dead letters, and hot keys."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.ops.why.facts import JobFacts
from headrace.ops.why.finding import Finding
from headrace.plan.topics import dead_topic


def filtered(facts: JobFacts) -> Iterator[Finding]:
    """A step let no record pass."""
    tails = ", ".join(f"headrace tail {stream.name}" for stream in facts.streams)
    for row in facts.counts():
        if row["in"] and row["filtered"] == row["in"]:
            does = next((step.does for step in facts.steps if step.name == row["step"]), "")
            yield Finding(
                "filtered out",
                f"{row['step']!r} filtered out {row['filtered']:,} of {row['in']:,} records",
                why=f"its condition was true for none: {does}" if does else None,
                remedy=f"compare the condition with the records: {tails}",
                step=row["step"],
            )


def dead_letters(facts: JobFacts) -> Iterator[Finding]:
    """Records could not be read or computed."""
    topics = [dead_topic(stream.name) for stream in facts.streams]
    path = f"/api/v1/topics/{topics[0] if len(topics) == 1 else '<topic>'}/redrive"
    for row in facts.counts():
        if row["dead_letter"]:
            reason = f"; the first: {row['dead_letter_reason']}" if row["dead_letter_reason"] else ""
            yield Finding(
                "dead letters",
                f"{row['dead_letter']:,} of {row['in']:,} records of {row['step']!r} are dead letters{reason}",
                why="a record that cannot be read or computed is in no result",
                remedy=f"they are kept in {', '.join(topics)}; fix them and send them again on the page, or by POST {path}",
                step=row["step"],
            )


def hot_key(facts: JobFacts) -> Iterator[Finding]:
    """One key has most of the records of a step that has all records of a key on one shard."""
    names = {step.name for step in facts.steps}
    for hot in facts.hot:
        if hot.trouble and hot.step in names:
            yield Finding(
                "hot key",
                f"key {hot.key} has {hot.share:.0%} of the records of {hot.step!r}",
                why="they all meet on one shard, so one core does the work of the step",
                remedy="group by a finer key first, or filter the key out if it is no real one (null, 0, unknown)",
                step=hot.step,
            )
