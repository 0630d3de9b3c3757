"""Rules about event time: what holds the watermark back, and when the open windows close."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from headrace.core.clock import to_datetime
from headrace.core.durations import spelled
from headrace.engine.times.event_time_trace import spans_of
from headrace.jobs.facts.described_time import rebuilt
from headrace.jobs.facts.description import DescribedStep
from headrace.operators.event_time.epoch_time import END
from headrace.operators.event_time.lateness_histogram import chosen_bound
from headrace.operators.event_time.watermark import held_by
from headrace.ops.why.facts import JobFacts
from headrace.ops.why.finding import Finding
from headrace.plan.watermarks import Bounded, Watermark

# A partition that is this far behind the others holds the watermark back.
_BEHIND = timedelta(seconds=10)


def watermark_held(facts: JobFacts) -> Iterator[Finding]:
    """One partition, or a stream without records, keeps the watermark behind all others."""
    if facts.plan is None or facts.plan.watermark == END:
        return
    holder = held_by(facts.progress, facts.rules, facts.plan.clock)
    latest = [part.latest for name in facts.rules if name in facts.progress for part in facts.progress[name].partitions.values()]
    if holder is None or not latest:
        return
    stream, rule = facts.progress[holder.stream], facts.rules[holder.stream]
    if holder.partition is None:
        if not stream.partitions:
            began = None if stream.began_at is None else to_datetime(stream.began_at)
            fact = f"the watermark waits for stream {holder.stream!r}, which had no record yet"
            yield _held(fact, holder.stream, rule, began)
        return
    reach = stream.partitions[holder.partition]
    behind = timedelta(microseconds=max(latest) - reach.latest)
    if behind >= _BEHIND:
        fact = (
            f"partition {holder.partition} of {holder.stream} holds the watermark: its latest record has event time "
            f"{_clock(reach.latest)} UTC, {_seconds(behind)} behind the latest of all"
        )
        yield _held(fact, holder.stream, rule, to_datetime(reach.seen_at))


def window_open(facts: JobFacts) -> Iterator[Finding]:
    """A window whose end the watermark has not reached has no result on time yet."""
    if facts.plan is None or facts.plan.watermark == END:
        return
    mark = facts.watermark
    for step in facts.steps:
        window = rebuilt(step.window)
        streams = _streams_of(facts, step)
        # A window over windows waits for those before it.
        if window is None or not streams or any(before.window for before in _before(facts, step)):
            continue
        times = [part.latest for name in streams if name in facts.progress for part in facts.progress[name].partitions.values()]
        spans = [span for time in times for span in spans_of(window, time) if mark is None or span[1] > mark]
        if not spans:
            continue
        start, end = min(spans, key=lambda span: span[1])
        missing = f", in {_seconds(timedelta(microseconds=end - mark))} of event time" if mark is not None else ""
        reached = f"the watermark is {_clock(mark)} UTC" if mark is not None else "there is no watermark yet"
        needed = max(end + chosen_bound(facts.rules[name], None) for name in streams)
        yield Finding(
            "window open",
            f"the window {_clock(start)} to {_clock(end)} of {step.name!r} closes at {_clock(end)} UTC{missing}",
            why=f"a window emits when the watermark passes its end, and {reached}",
            remedy=f"records of {_clock(needed)} UTC or later in every partition close it; so does headrace run app.py --until flushed",
            step=step.name,
            wrong=False,
        )


def _held(fact: str, stream: str, rule: Watermark, since: datetime | None) -> Finding:
    if rule.idle is not None:
        remedy = f"it is left out after {spelled(rule.idle)} without records (idle=); else send it records, or wait"
    else:
        given = f'hr.bounded("{spelled(rule.delay)}", idle="1 minute")' if isinstance(rule, Bounded) else 'idle="1 minute"'
        remedy = f"let a silent partition be left out: watermark={given}; or send it records"
    why = "the watermark is the minimum over all partitions, so windows stay open"
    return Finding("watermark held", fact, since, why, remedy, stream)


def _before(facts: JobFacts, step: DescribedStep) -> list[DescribedStep]:
    """The steps that a step depends on."""
    known, wanted = {found.name: found for found in facts.steps}, list(step.reads)
    found = []
    while wanted:
        before = known[wanted.pop()]
        found.append(before)
        wanted += before.reads
    return found


def _streams_of(facts: JobFacts, step: DescribedStep) -> list[str]:
    return [before.name for before in _before(facts, step) if before.kind == "stream" and before.name in facts.rules]


def _clock(moment: int) -> str:
    return f"{to_datetime(moment):%Y-%m-%d %H:%M:%S}"


def _seconds(span: timedelta) -> str:
    """A duration in whole seconds."""
    return spelled(timedelta(seconds=max(1, round(span.total_seconds()))))
