"""Snapshots for new outputs: in their first epoch they get all live rows of their table, in place of its changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.engine.program.flow import Flow
from headrace.engine.program.program import OutputSnapshot, Program


@dataclass(frozen=True)
class _Parted:
    """A flow in two: the part that leads to some outputs, and the rest."""

    chosen: Flow
    rest: Flow


def with_snapshots(program: Program, outputs: Iterable[str], epoch: int) -> Program:
    """A program whose outputs of these names begin in an epoch with all live rows of their table."""
    names = {target for output in outputs for target in (output, f"{output}.exchange")}
    found = {name: _parted(operator.flow, names) for name, operator in program.operators.items()}
    made = {name: OutputSnapshot(epoch, parts.chosen, parts.rest) for name, parts in found.items() if _leads(parts.chosen)}
    # An exchange passes on what it gets.
    return replace(program, snapshots={name: made[name] for name in made if name not in names})


def _parted(flow: Flow, names: set[str]) -> _Parted:
    branches = [_parted(branch, names) for branch in flow.branches]
    chosen = tuple(exit_ for exit_ in flow.exits if exit_.target in names)
    rest = tuple(exit_ for exit_ in flow.exits if exit_.target not in names)
    return _Parted(
        Flow(flow.steps, chosen, tuple(branch.chosen for branch in branches if _leads(branch.chosen))),
        Flow(flow.steps, rest, tuple(branch.rest for branch in branches if _leads(branch.rest))),
    )


def _leads(flow: Flow) -> bool:
    return bool(flow.exits or flow.branches)
