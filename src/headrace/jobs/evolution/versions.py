"""One version of an app as its job records it: what each step computes, and the place of its state."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.checkpoint.layouts import PlacedStep, StateLayout
from headrace.engine.evolution.snapshots import with_snapshots
from headrace.engine.program.compiler import compiled
from headrace.engine.program.program import Program, StateName
from headrace.jobs.directory import JobDirectory, Record
from headrace.plan.evolution.described import Described, StepIdentity, described
from headrace.plan.plan import Plan


@dataclass(frozen=True)
class Version:
    """A plan, and the directories of its steps by their names."""

    plan: Plan
    described: Described
    ids: Mapping[str, str]

    @classmethod
    def first(cls, plan: Plan) -> Version:
        """The version that a job begins with."""
        found = described(plan)
        return cls(plan, found, new_ids(found.steps, ()))

    def steps(self, program: Program) -> dict[str, PlacedStep]:
        return {
            step.name: PlacedStep(self.ids[step.name], program.operators[step.name].level, step.fingerprint)
            for step in self.described.steps
        }  # fmt: skip


def new_ids(steps: Collection[StepIdentity], taken: Collection[str]) -> dict[str, str]:
    """Directories for steps: named as the steps are, and unlike those that are taken."""
    ids: dict[str, str] = {}
    for step in steps:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", step.addresses[0].replace("/", ".")).lstrip(".") or "step"
        names = (f"{plain}~{number}" if number else plain for number in range(len(steps) + len(taken) + 1))
        ids[step.name] = next(name for name in names if name not in {*taken, *ids.values()})
    return ids


def layout_of(record: Record, checkpoint: Path) -> StateLayout:
    """The layout that a job's state has."""
    return StateLayout(
        checkpoint, record.layout, record.shards, {name: PlacedStep(*step) for name, step in record.steps.items()}, record.levels
    )


def program_of(plan: Plan, record: Record, epoch: int) -> Program:
    """The program of a job: its state is where the record says, and outputs that begin after an epoch begin with a snapshot."""
    program = compiled(plan, record.shards)
    names = {name: StateName(step[0], step[2]) for name, step in record.steps.items() if name in program.operators}
    program = Program(**{**{field: getattr(program, field) for field in program.__dataclass_fields__}, "names": names})
    begin = [output for output, first in record.begins.items() if first == epoch + 1]
    return with_snapshots(program, begin, epoch + 1) if begin else program


def recorded(place: JobDirectory) -> Described | None:
    """The recorded version of a job; None before its first run."""
    record = place.record()
    return None if record is None or not record.described else Described.of_json(record.described)
