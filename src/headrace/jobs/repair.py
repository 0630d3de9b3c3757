"""Repair of a job's checkpoint where files are torn or missing, by what its outputs have.

The last epoch whose offset, commit and state are complete stays. Later epochs are repeated with exactly their offsets, and outputs skip
what they already have of them. Where offsets are lost, the epoch is planned again; that is right only if nothing of it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headrace.checkpoint.epoch_files import Checkpoint
from headrace.checkpoint.referenced_files import StateFiles
from headrace.connectors.log.output import LogOutput
from headrace.connectors.output import Output, Writer
from headrace.connectors.staged_output import StagedOutput
from headrace.core.errors import JobError
from headrace.core.settings import Settings
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.start.outputs import outputs_of
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.plan.plan import Plan
from headrace.plan.topics import accounting_topic


@dataclass
class Mending:
    """The steps of a repair, in words, and their files."""

    steps: list[str] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    """Batches whose commits are removed."""
    offsets: list[int] = field(default_factory=list)
    """Batches whose offsets are taken away."""
    again: list[int] = field(default_factory=list)
    """Those among them that come again with the same offsets."""
    replanned: int | None = None
    """The first batch that is planned again."""

    def __bool__(self) -> bool:
        return bool(self.steps)


def repair(plan: Plan, settings: Settings) -> list[str]:
    """Repair the checkpoint of a plan's job; returns what was done, in sentences. Raises where nothing can be done without loss."""
    place = JobDirectory(settings.home, plan.name)
    record, checkpoint = place.record(), Checkpoint(place.checkpoint)
    if record is None or not checkpoint.present:
        raise JobError(f"job {plan.name!r} has no checkpoint in {place.path}", hint="run it first, or name the app whose job it is")
    with Log(settings.home / "log") as log, place.held():
        state = state_files(plan, record, place.checkpoint)
        found = examined(checkpoint, state, thorough=True)
        # The epoch after all known ones is planned again, too.
        beyond = _unknown(place, checkpoint) if found.replanned is None else found.replanned + 1
        _check_unwritten(plan.name, beyond, _last_epochs(outputs_of(log, plan), record))
        if not checkpoint.named:
            found.steps.append("the id of the query is torn or missing: it gets a new one, on which nothing depends")
            checkpoint.name()
        _mend(place, checkpoint, found)
        if found.replanned is not None:
            _forget_staged(plan, record, log, found.replanned + 1)
    return found.steps


def state_files(plan: Plan, record: Record, checkpoint: Path) -> StateFiles:
    """The files of the state of a plan's job."""
    return StateFiles(checkpoint, compiled(plan, record.shards).levels, record.shards, record.layout, record.changed_at)


def refuse_a_damaged(place: JobDirectory, record: Record, state: StateFiles, log: Log) -> None:
    """Raise if a job cannot continue from its checkpoint as it is."""
    checkpoint, topic = Checkpoint(place.checkpoint), accounting_topic(place.name)
    # This output is the quickest to ask, and has every epoch with records.
    _check_unwritten(place.name, _unknown(place, checkpoint), _last_epochs({topic: LogOutput(log.path, topic)}, record))
    try:
        steps = examined(checkpoint, state).steps
    except JobError as error:
        steps = [error.fact]
    if steps or not checkpoint.named:
        raise JobError(
            f"the checkpoint of job {place.name!r} is damaged: {'; '.join(steps) or 'the id of its query is torn or missing'}",
            why="Spark would stop at it, or start the job from the beginning on top of what it has written",
            hint="headrace repair app.py repairs it from what the outputs have, or says why that is impossible",
        )


def examined(checkpoint: Checkpoint, state: StateFiles, *, thorough: bool = False) -> Mending:
    """The damage to the offsets, the commits and the state of a checkpoint, and its repair.

    State files are checked by size and, thoroughly, by content.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    last, mending = checkpoint.last, Mending()
    done = sorted((batch for batch in offsets if offsets[batch] is not None and commits.get(batch)), reverse=True)
    base = next((batch for batch in done if state.damaged(batch + 1, thorough=thorough) is None), -1)
    first = min(offsets, default=0)
    if base < 0 and (first > 0 or state.changed_at):
        known = f"the offsets of epochs before {first + 1} are cleared away" if first > 0 else "before a change of the app it was another"
        raise JobError(
            f"no epoch of {checkpoint.path} has its offset, its commit and its state whole",
            why=f"state is known only as of such an epoch, and {known}",
            hint="start from the beginning: headrace reset app.py",
        )
    if done and done[0] > base:
        _judge_state(mending, base, done[0], state)
    _judge_commits(mending, base, last, commits, offsets)
    broken = [batch for batch in range(base + 1, last + 1) if offsets.get(batch) is None]
    if broken:
        mending.replanned = broken[0]
        epochs = _epochs(broken[0], last)
        mending.steps.append(f"the offset of epoch {broken[0] + 1} is torn or missing, and no output has any of it: {epochs} planned again")
    whole = range(base + 1, (broken[0] if broken else last + 1))
    # Spark repeats the last epoch that has an offset and no commit; later ones come back by our own plan.
    mending.again = [batch for batch in whole if batch > base + 1]
    mending.offsets = [batch for batch in offsets if batch > base + 1 or batch in broken]
    mending.commits = [batch for batch in commits if batch > base]
    return mending


def _judge_state(mending: Mending, base: int, done: int, state: StateFiles) -> None:
    file = state.damaged(done + 1, thorough=True)
    assert file is not None
    name, stays = file.relative_to(state.checkpoint), f"epoch {base + 1}, whose state is whole" if base >= 0 else "the beginning"
    word = "torn" if file.exists() else "missing"
    mending.steps.append(
        f"the state as of epoch {done + 1} references {name}, which is {word}: the job goes back to {stays}, and repeats what came after "
        "it; outputs pass over what they have"
    )


def _judge_commits(mending: Mending, base: int, last: int, commits: dict[int, bool], offsets: Mapping[int, object]) -> None:
    """Find the epochs to repeat because their commits are missing, except the last one, which may be in progress."""
    torn = [batch for batch in range(base + 1, last + 1) if commits.get(batch) is False]
    missing = [batch for batch in range(base + 1, last) if batch not in commits]
    for batch in sorted({*torn, *missing}):
        if offsets.get(batch) is not None:
            word = "torn" if batch in torn else "missing"
            mending.steps.append(
                f"the commit of epoch {batch + 1} is {word}: the epoch is done again, and outputs pass over what they have"
            )


def _unknown(place: JobDirectory, checkpoint: Checkpoint) -> int:
    """The first epoch whose plan is unknown."""
    return max([checkpoint.last + 1, *place.planned()]) + 1


def _check_unwritten(job: str, epoch: int, written: dict[str, int | None]) -> None:
    """Refuse to plan an epoch again if some output has it, or a later one: it would skip records it never had."""
    having = {name: last for name, last in written.items() if last is not None and last >= epoch}
    if having:
        named = ", ".join(f"{name!r} (epoch {last})" for name, last in having.items())
        raise JobError(
            f"the offset of epoch {epoch} of job {job!r} is torn or missing, and outputs have the epoch: {named}",
            why="its records are no longer known: planned again, it would lose records, or write some twice",
            hint="restore the file from a copy of the checkpoint, or start from the beginning: headrace reset app.py",
        )


def _last_epochs(outputs: Mapping[str, Output], record: Record) -> dict[str, int | None]:
    """The last epoch that each output has: views, sinks, late records, dead letters and the accounting."""
    found: dict[str, int | None] = {}
    for name, output in outputs.items():
        # Not every sink has a topic for what it refuses.
        with suppress(UnknownTopic):
            epochs = [output.last_epoch(Writer(record.id, name, task)) for task in range(record.tasks)]
            found[name] = max((epoch for epoch in epochs if epoch is not None), default=None)
    return found


def _mend(place: JobDirectory, checkpoint: Checkpoint, mending: Mending) -> None:
    """The plan of the repeated epochs is durable before anything is removed."""
    if mending.again or mending.replanned is not None:
        planned = {**place.planned(), **{batch + 1: checkpoint.offsets[batch] for batch in mending.again}}
        place.plan(plan for epoch, plan in sorted(planned.items()) if plan and (mending.replanned is None or epoch <= mending.replanned))
    for batch in sorted(mending.commits, reverse=True):
        checkpoint.forget_commit(batch)
    for batch in sorted(mending.offsets, reverse=True):
        checkpoint.forget_offset(batch)


def _forget_staged(plan: Plan, record: Record, log: Log, epoch: int) -> None:
    outputs: dict[str, Output] = outputs_of(log, plan)
    for name, output in outputs.items():
        if isinstance(output, StagedOutput):
            output.forget(record.id, name, epoch)


def _epochs(first: int, last: int) -> str:
    return f"epoch {first + 1} is" if first == last else f"epochs {first + 1} to {last + 1} are"
