"""The stage that writes each output: the first one behind all that emits to it, so that its rows travel no further.

An output has one stage, and in it one writer for each shard: what several stages emit to is written by the last one. Late records, dead
letters and the accounting come from all stages.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.engine.program.flow import Flow
from headrace.engine.program.program import Program


def output_stages(program: Program) -> dict[str, int]:
    """The level at whose tasks each view and sink is written; those that are not here are written behind the last one."""
    emitters: dict[str, set[int | None]] = {}
    for level, flow in _flows(program):
        for name in _exits(flow):
            if name in program.outlets:
                emitters.setdefault(name, set()).add(level)
    return {name: level for name, levels in emitters.items() if len(levels) == 1 and (level := next(iter(levels))) is not None}


def _flows(program: Program) -> Iterator[tuple[int | None, Flow]]:
    """Every flow, and the level whose tasks have what it emits: its own, or the next one, to which its rows are shuffled."""
    for origin in program.origins.values():
        yield _next(program, 0), origin.flow
    for operator in program.operators.values():
        yield operator.level, operator.flow
    for step in program.cuts.values():
        yield _next(program, step.level), step.flow
    for side in program.side_streams.values():
        # Late records and dead letters come from every level.
        yield None, side.flow


def _next(program: Program, level: int) -> int | None:
    return level + 1 if level < program.levels else None


def _exits(flow: Flow) -> Iterator[str]:
    yield from (exit_.target for exit_ in flow.exits)
    for branch in flow.branches:
        yield from _exits(branch)
