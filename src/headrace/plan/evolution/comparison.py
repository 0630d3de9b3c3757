"""A changed app against the app that its job runs: what is kept, new, dropped, or would have to be rebuilt, and why.

A step keeps its state if every part of its fingerprint is the same, whatever it is called and wherever it stands. What is not sure to
give the results of a run from the beginning is refused, or its difference is announced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.plan.evolution.described import CODE, Described, OutputIdentity, StepIdentity
from headrace.plan.evolution.fingerprints import COLUMNS, READS
from headrace.plan.nodes import TUNABLE

KEEP, NEW, DROP, REBUILD = "keep", "new", "drop", "rebuild"
SAME, CHANGED, REFUSED = "same", "changed", "refused"
_WORDS = {
    READS: "what it reads",
    "by": "its key",
    "key": "its key",
    "kind": "the kind of step",
    COLUMNS: "its columns",
    CODE: "the code of a function",
}


@dataclass(frozen=True)
class Decision:
    """What becomes of a step, an output or a source.

    `differs` says in which way results are not those of a run from the beginning; empty where they are the same.
    """

    kind: str
    name: str
    decision: str
    why: str = ""
    differs: str = ""

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to accept."""
        return self.decision == KEEP and not self.why

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.decision:<8}{self.kind} {self.name}{why}{f' ({self.differs})' if self.differs else ''}"


@dataclass(frozen=True)
class Decisions:
    """All decisions on a changed app, and where the state of each of its steps comes from."""

    decisions: tuple[Decision, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    """The steps of the new plan that have state, each with the step of the old one whose state it takes over."""
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The aggregates that a step of the new plan has no more, by the names of their columns."""
    snapshots: tuple[str, ...] = ()
    """The outputs that begin with all live rows of their table."""
    emptied: tuple[str, ...] = ()
    """Those of them that had other rows before."""

    @property
    def status(self) -> str:
        if any(decision.decision == REBUILD for decision in self.decisions):
            return REFUSED
        return SAME if all(decision.quiet for decision in self.decisions) else CHANGED

    @property
    def moves(self) -> bool:
        """Whether the state of some step is another than before, or under another name."""
        return bool(self.dropped) or any(name != before for name, before in self.states.items())

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status, "decisions": [asdict(decision) for decision in self.decisions]}

    def __str__(self) -> str:
        return "\n".join(str(decision) for decision in self.decisions)


def compared(before: Described, after: Described) -> Decisions:
    """What a job that runs one plan has to do to run another."""
    return _Comparison(before, after).changes()


class _Comparison:
    def __init__(self, before: Described, after: Described) -> None:
        self._before, self._after = before, after
        self._states: dict[str, str] = {}
        self._dropped: dict[str, tuple[str, ...]] = {}
        self._snapshots: list[str] = []
        self._emptied: list[str] = []

    def changes(self) -> Decisions:
        self._match()
        steps = [self._step(step) for step in self._after.steps]
        steps += [
            Decision("step", step.addresses[0], DROP, f"no view or sink needs it: {step.does}")
            for step in self._before.steps
            if step.name not in self._states.values() and self._former(step) is None
        ]
        decisions = (*self._foreign(), *self._sources(), *steps, *self._outputs())
        return Decisions(decisions, self._states, self._dropped, tuple(self._snapshots), tuple(self._emptied))

    def _match(self) -> None:
        """Find for each step the state that it can continue with: its own, or that of a step that computes the same."""
        for step in self._after.steps:
            alike = [one for one in self._before.steps if _covers(one, step)]
            alike.sort(key=lambda one: self._distance(one, step))
            if alike:
                self._states[step.name] = alike[0].name
                gone = tuple(name for name in alike[0].aggregates if name not in step.aggregates)
                if gone:
                    self._dropped[step.name] = gone

    def _distance(self, before: StepIdentity, step: StepIdentity) -> tuple[bool, bool, bool, bool]:
        """How far the results in a state may be from those of a step: the same code and ttl count more than the same name."""
        addressed = bool(set(before.addresses) & set(step.addresses))
        return dict(before.tunable) != dict(step.tunable), not addressed, before.name != step.name, before.name in self._states.values()

    def _step(self, step: StepIdentity) -> Decision:
        if step.name in self._states:
            return self._kept(step, next(one for one in self._before.steps if one.name == self._states[step.name]))
        former = next((one for one in self._before.steps if self._is_former(one, step)), None)
        if former is None:
            return Decision("step", step.addresses[0], REBUILD, "it is new: its state would lack everything that was read so far")
        parts = _differences(former.parts, step.parts)
        added = [text for name, text in step.aggregates.items() if name not in former.aggregates]
        gone = [text for name, text in former.aggregates.items() if name not in step.aggregates]
        why = list(parts)
        why += [f"{', '.join(added)} is new: its state would lack everything that was read so far"] if added and not parts else []
        why += [f"{', '.join(gone)} cannot be dropped where records are kept one by one"] if gone and not added and not parts else []
        return Decision("step", step.addresses[0], REBUILD, "; ".join(why))

    def _kept(self, step: StepIdentity, before: StepIdentity) -> Decision:
        why, differs = [], ""
        if before.addresses[0] != step.addresses[0] and before.addresses[0] not in step.addresses:
            why.append(f"was {before.addresses[0]}")
        if step.name in self._dropped:
            gone = [before.aggregates[name] for name in self._dropped[step.name]]
            why.append(f"without {', '.join(gone)}")
        for name, value in step.tunable.items():
            if before.tunable.get(name) == value:
                continue
            if name == CODE:
                why.append("the code of a function changed")
                differs = "results of the earlier code stay"
            elif name not in TUNABLE:
                why.append(f"{name} changed")
                differs = "earlier results stay as they are"
            else:
                why.append(f"{name} {before.tunable.get(name)} is now {value}")
                differs = f"rows that expired by the former {name} do not come back, and the others are there"
        return Decision("step", step.addresses[0], KEEP, "; ".join(why), differs)

    def _former(self, step: StepIdentity) -> StepIdentity | None:
        """The step of the new plan that stands where a step of the old one stood, and cannot take its state over."""
        return next((one for one in self._after.steps if one.name not in self._states and self._is_former(step, one)), None)

    def _is_former(self, before: StepIdentity, after: StepIdentity) -> bool:
        return before.name not in self._states.values() and bool(set(before.addresses) & set(after.addresses))

    def _foreign(self) -> list[Decision]:
        if self._before.foreign == self._after.foreign:
            return []
        return [Decision("app", "steps of Spark", REBUILD, "Spark evaluates others, and its checkpoint counts how often they read")]

    def _sources(self) -> list[Decision]:
        former, found = {source.name: source for source in self._before.sources}, []
        for source in self._after.sources:
            if source.name not in former:
                found.append(Decision("stream", source.name, REBUILD, "it is new, and event time has passed its first records"))
            elif former[source.name].watermark != source.watermark:
                why = f"watermark {former[source.name].watermark or 'none'} is now {source.watermark or 'none'}"
                known = former[source.name].watermark and source.watermark
                differs = "counts from now on: event time does not go back, and late records stay late"
                found.append(Decision("stream", source.name, KEEP if known else REBUILD, why, differs if known else ""))
            else:
                found.append(Decision("stream", source.name, KEEP))
        names = {source.name for source in self._after.sources}
        gone = [source.name for source in self._before.sources if source.name not in names]
        differs = "event time no longer waits for it"
        return found + [Decision("stream", name, DROP, "no view or sink needs it", differs) for name in gone]

    def _outputs(self) -> list[Decision]:
        former = {output.name: output for output in self._before.outputs}
        found = [self._output(output, former.get(output.name)) for output in self._after.outputs]
        names = {output.name for output in self._after.outputs}
        return found + [Decision(one.kind, one.name, DROP, _left(one)) for one in self._before.outputs if one.name not in names]

    def _output(self, output: OutputIdentity, before: OutputIdentity | None) -> Decision:
        if before is None:
            return self._new(output, "")
        parts = [part for part in {**before.parts, **output.parts} if before.parts.get(part) != output.parts.get(part)]
        words = ", ".join(_WORDS.get(part, part) for part in parts)
        if before.kind != output.kind:
            return Decision(output.kind, output.name, REBUILD, f"it was a {before.kind}; give the {output.kind} a name of its own")
        if not parts:
            return Decision(output.kind, output.name, KEEP)
        if "target" in parts:
            return self._new(output, f"{words} changed; ")
        if output.kind == "view" and output.table:
            self._snapshots.append(output.name)
            self._emptied.append(output.name)
            return Decision(output.kind, output.name, KEEP, f"{words} changed; it is emptied, and begins with all live rows of its table")
        if output.kind == "view" and {COLUMNS, "key"} & set(parts):
            return Decision(
                output.kind, output.name, REBUILD, f"{words} changed; give the view another name, and it begins with the next epoch"
            )
        return Decision(output.kind, output.name, KEEP, f"{words} changed", "earlier results stay as they are")

    def _new(self, output: OutputIdentity, why: str) -> Decision:
        if output.table:
            self._snapshots.append(output.name)
            return Decision(output.kind, output.name, NEW, f"{why}it begins with all live rows of its table")
        return Decision(output.kind, output.name, NEW, f"{why}it begins with the next epoch", "earlier results are not in it")


def _covers(before: StepIdentity, after: StepIdentity) -> bool:
    """Whether the state of a step has all that another needs."""
    if dict(before.parts) != dict(after.parts):
        return False
    return set(after.aggregates) <= set(before.aggregates) if after.sheds else set(after.aggregates) == set(before.aggregates)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The parts of a step that differ, in words: those that changed, are new, or are gone."""
    changed = [part for part in before if part in after and before[part] != after[part]]
    new, gone = ([], []) if before["kind"] != after["kind"] else (after.keys() - before.keys(), before.keys() - after.keys())
    found = []
    for parts, became in ((changed, "changed"), (sorted(new), "new"), (sorted(gone), "gone")):
        said = ", ".join(_WORDS.get(part, part) for part in parts)
        found += [f"{said} {became if became == 'changed' else f'{_be(parts)} {became}'}"] if said else []
    return found


def _be(parts: Collection[str]) -> str:
    return "is" if len(parts) == 1 else "are"


def _left(output: OutputIdentity) -> str:
    return "its rows stay in its topic" if output.kind == "view" else "what it wrote stays"
