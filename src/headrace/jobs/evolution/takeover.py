"""Takeover of a job's state by another version of its app, or by other shards: then the job's record is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.checkpoint.layouts import PlacedStep, StateLayout, StepBlobs, Takeover, remove_others
from headrace.core import failpoints
from headrace.core.errors import JobError
from headrace.engine.evolution.kept_state import without
from headrace.engine.evolution.key_groups import spread
from headrace.engine.program.compiler import compiled
from headrace.engine.program.program import Operator
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.evolution.versions import Version, layout_of, new_ids
from headrace.jobs.start.outputs import topics_of
from headrace.operators.contract import Stateful
from headrace.plan.evolution.comparison import CHANGED, NEW, REBUILD, REFUSED, SAME, Decision, Decisions, compared
from headrace.plan.evolution.described import Described, described
from headrace.plan.explain import identity
from headrace.plan.plan import Plan


def changes_of(plan: Plan, place: JobDirectory) -> Decisions | None:
    """The changes of a plan for its job; None if it has not begun."""
    record = place.record()
    if record is None:
        return None
    place.check(record)
    found = compared(Described.of_json(record.described), described(plan))
    levels = compiled(plan, record.shards).levels
    if record.cluster and levels != record.levels:
        why = f"there are {levels} levels of state in place of {record.levels}, and on a cluster Spark counts them in its checkpoint"
        return replace(found, decisions=(*found.decisions, Decision("app", plan.name, REBUILD, why)))
    return found


def refuse_unaccepted(changes: Decisions, place: JobDirectory, *, accepted: bool) -> None:
    """Raise if a changed app cannot keep its state, or if the changes were not accepted."""
    if changes.status == REFUSED:
        raise JobError(
            f"app {place.name!r} cannot continue with the state of its job:\n{changes}",
            why="steps that are marked rebuild would have to be computed from the beginning",
            hint="declare the changed steps in a second app, with views of other names, or start from the beginning: headrace reset app.py",
        )
    if changes.status == CHANGED and not accepted:
        raise JobError(
            f"app {place.name!r} has changed since its job was started:\n{changes}",
            why="a change is reviewed before it is applied",
            hint="headrace run app.py --accept applies these changes; headrace plan app.py shows it again",
        )


def evolve(plan: Plan, place: JobDirectory, changes: Decisions) -> None:
    """Make a job that of a changed plan, from its last committed epoch on. Only the holder of the job may do so.

    A crash leaves the former version with its state, or the new one with its own.
    """
    record = place.record()
    assert record is not None
    version = _version(plan, record, changes)
    if changes.status == SAME:
        _rename(version, record, place)
        return
    epoch, shards = place.committed_epoch(), record.shards
    fresh = [decision.name for decision in changes.decisions if decision.decision == NEW and decision.kind == "view"]
    made = _record(version, record, shards, epoch)
    made = replace(
        made,
        begins=dict.fromkeys(changes.snapshots, epoch + 1),
        # A view of this name may have been dropped before.
        emptied=sorted({*record.emptied, *changes.emptied, *fresh}),
        topics={topic.name: topic.kind for topic in topics_of(plan)},
    )
    _take_over(version, record, made, place, changes)


def rescale(plan: Plan, place: JobDirectory, *, shards: int, tasks: int) -> None:
    """Give a stopped job another number of shards and tasks. Only the holder of the job may do so."""
    record = place.record()
    if record is None:
        raise JobError(f"job {place.name!r} has not begun", hint="run it first: its first run fixes shards and tasks")
    changes = changes_of(plan, place)
    assert changes is not None
    refuse_unaccepted(changes, place, accepted=False)
    if record.cluster or tasks % record.partitions or shards % tasks:
        raise JobError(
            f"job {place.name!r} cannot continue with {tasks} tasks and {shards} shards",
            why="each partition of a view has one writer, and each task as many shards as the others",
            hint=f"on one machine, give a multiple of {record.partitions} tasks, and a multiple of the tasks as shards",
        )
    version = _version(plan, record, changes)
    _take_over(version, record, _record(version, replace(record, tasks=tasks), shards, place.committed_epoch()), place, changes)


def _version(plan: Plan, record: Record, changes: Decisions) -> Version:
    """The new version: a step that takes over the state of another has its directory, one of several that do so."""
    after, ids = described(plan), dict[str, str]()
    for name, former in changes.states.items():
        found = record.steps[former][0]
        if found not in ids.values():
            ids[name] = found
    others = [step for step in after.steps if step.name not in ids]
    taken = {*ids.values(), *(step[0] for step in record.steps.values())}
    return Version(plan, after, {**ids, **new_ids(others, taken)})


def _record(version: Version, record: Record, shards: int, epoch: int) -> Record:
    program = compiled(version.plan, shards)
    return replace(
        record, plan=identity(version.plan), shards=shards, described=version.described.to_json(), steps=version.steps(program),
        levels=program.levels, layout=record.layout + 1, changed_at=epoch,
    )  # fmt: skip


def _rename(version: Version, record: Record, place: JobDirectory) -> None:
    """Steps that compute the same may have changed names; their state stays where it is."""
    described_now = version.described.to_json()
    if described_now == record.described:
        return
    by_id = {step[0]: step for step in record.steps.values()}
    steps = {name: by_id[id_] for name, id_ in version.ids.items()}
    place.replace(replace(record, plan=identity(version.plan), described=described_now, steps=steps))


def _take_over(version: Version, record: Record, made: Record, place: JobDirectory, changes: Decisions) -> None:
    before, after = layout_of(record, place.checkpoint), layout_of(made, place.checkpoint)
    if made.changed_at:
        program = compiled(version.plan, made.shards)
        taking = Takeover(before, after, made.changed_at)
        for name, former in changes.states.items():
            dropped = changes.dropped.get(name, ())
            if _as_before(before, after, former, name) and not dropped:
                taking.keep(former, name)
            else:
                taking.rewrite(former, name, _Rewriting(program.operators[name], dropped))
        taking.finish()
    failpoints.reach("evolution.record.before")
    place.replace(made)
    failpoints.reach("evolution.record.after")
    remove_others(after)


def _as_before(before: StateLayout, after: StateLayout, former: str, name: str) -> bool:
    """Whether a step finds its files in place."""
    old: PlacedStep = before.steps[former]
    return old.id == after.steps[name].id and before.shards == after.shards


@dataclass(frozen=True)
class _Rewriting:
    """The state of an operator, read from its former shards and written to its new ones."""

    operator: Operator
    dropped: Sequence[str]

    def __call__(self, former: Sequence[StepBlobs], fresh: Sequence[StepBlobs]) -> list[str]:
        parts = spread([self._restored(stored) for stored in former], self.operator.by, len(fresh))
        manifests = []
        for part, stored in zip(parts, fresh, strict=True):
            state = self.operator.fresh()
            state.absorb(without(part, self.dropped), stored)
            manifests.append(state.manifest())
        return manifests

    def _restored(self, stored: StepBlobs) -> Stateful:
        state = self.operator.fresh()
        state.restore(stored.manifest, stored)
        return state


def settled(place: JobDirectory, record: Record) -> Record:
    """The record of a job whose outputs that were to be emptied are so."""
    if not record.emptied:
        return record
    done = replace(record, emptied=[])
    place.replace(done)
    return done
