"""All that a job's tasks need, shipped to them as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from headrace.connectors.input import Input
from headrace.connectors.output import Output
from headrace.core.clock import Clock, SystemClock
from headrace.plan.watermarks import Watermark

if TYPE_CHECKING:
    # Processes that only plan epochs would load all operators, and the libraries these stand on, for nothing.
    from headrace.operators.program import Program


class Packed:
    """A program that travels as bytes, without the user's functions, and is unpacked where it is first used.

    What every epoch is planned by is beside it: the event time of each source, and whether windows go by the wall clock.
    """

    def __init__(self, program: Program) -> None:
        self.times = {name: origin.time for name, origin in program.origins.items()}
        self.clocked = program.clocked
        self._content: bytes | None = None
        self._program: Program | None = program

    @property
    def program(self) -> Program:
        if self._program is None:
            assert self._content is not None
            self._program = cloudpickle.loads(self._content)
        assert self._program is not None
        return self._program

    def __getstate__(self) -> dict[str, Any]:
        content = self._content if self._content is not None else cloudpickle.dumps(self.program.shipped())  # type: ignore[no-untyped-call]
        return {**self.__dict__, "_content": content, "_program": None}


@dataclass(frozen=True)
class Job:
    """A program with its inputs, its outputs, and how it runs."""

    id: str
    """Tells this job from every other, also from a former one of the same app: state and written epochs are its own."""
    name: str
    packed: Packed
    inputs: Mapping[str, Input]
    watermarks: Mapping[str, Watermark | None]
    outputs: Mapping[str, Output]
    """What the job writes to, by the name under which records are sent there."""
    keys: Mapping[str, tuple[str, ...]]
    """By which columns the rows of an output replace each other."""
    tasks: int
    rows_per_epoch: int | None = None
    until: str | None = None
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state
    aligned: Mapping[str, int] = field(default_factory=dict)
    """By how much event time a stream may be read ahead of the slowest other one, in microseconds."""
    planned: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """The offsets of epochs, by their numbers, that are to be done again as they were."""
    generation: int = 0
    """Which run of the job this is: writers of earlier ones are shut out."""

    @property
    def program(self) -> Program:
        """What the job runs; the user's functions are in it only where the job began, which is where they are called."""
        return self.packed.program
