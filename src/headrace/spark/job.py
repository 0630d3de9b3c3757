"""The value that is sent to a job's tasks, with all that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark import cloudpickle

from headrace.connectors.output import Output
from headrace.core.clock import Clock, SystemClock
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.input import Input
from headrace.engine.planning.planner import PlannedStream, Planner
from headrace.plan.watermarks import Watermark
from headrace.spark.packet_files import PacketFiles

if TYPE_CHECKING:
    # Processes that only plan epochs would otherwise load all operators and their libraries.
    from headrace.engine.program.program import Program


@lru_cache(maxsize=4)
def _unpacked(content: bytes) -> Program:
    """A program from its bytes; a worker gets the same ones in every epoch."""
    found: Program = cloudpickle.loads(content)
    return found


class Packed:
    """A program that travels as bytes, without the user's functions, and is unpacked where it is first used.

    What the planner needs is next to it: the event time of each source, and whether windows follow the wall clock.
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
            self._program = _unpacked(self._content)
        return self._program

    def closing(self, moment: int) -> int:
        """The end of the last window that contains a moment. Called only when a whole stream is silent, and unpacked for that."""
        return self.program.closing(moment)

    def due(self, before: int, clock: int, taken_at: int) -> bool:
        """Whether a window of the wall clock that may have records has ended since a moment."""
        return self.clocked and self.program.due(before, clock, taken_at)

    def __getstate__(self) -> dict[str, Any]:
        content = self._content if self._content is not None else cloudpickle.dumps(self.program.shipped())  # type: ignore[no-untyped-call]
        return {**self.__dict__, "_content": content, "_program": None}


@dataclass(frozen=True)
class Job:
    """A program with its inputs, its outputs, and its settings."""

    id: str
    """Tells this job from every other, also from a former one of the same app: state and written epochs are its own."""
    name: str
    packed: Packed
    inputs: Mapping[str, Input]
    watermarks: Mapping[str, Watermark | None]
    outputs: Mapping[str, Output]
    """The outputs of the job, by the name under which records are sent there."""
    keys: Mapping[str, tuple[str, ...]]
    """By which columns the rows of an output replace each other."""
    tasks: int
    rows_per_epoch: int | None = None
    epoch_seconds: float = 10.0
    """How long an epoch should take: one that takes longer lets the next take in less."""
    until: str | None = None
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state
    aligned: Mapping[str, int] = field(default_factory=dict)
    """By how much event time a stream may be read ahead of the slowest other one, in microseconds."""
    waits: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The streams that are not read before others are read to where they were when the job first started."""
    planned: Mapping[int, EpochPlan] = field(default_factory=dict)
    """Epochs, by their numbers, that are to be done again as they were planned."""
    generation: int = 0
    """The number of this run: writers of earlier runs are fenced."""
    run_id: str = field(default_factory=lambda: uuid4().hex)
    """Tells this run from every other. The number does not: a copy of the job's directory, such as a backup, counts on from its own."""
    begins: int = 0
    """The first epoch of outputs that begin with a snapshot."""
    quick_rows: int = 0
    """The largest number of records of an epoch that runs in one task; 0 if none does."""
    writes_where_read: bool = False
    """Whether readers write by themselves, each in the name of a task, and nothing is sent to other tasks."""
    packet_files: PacketFiles | None = None
    """Where large packets are put on their way to another task; None if the shuffle of Spark has them."""
    layout: int = 0
    """The number of the layout of the state; an accepted change of the app makes another layout."""

    @property
    def program(self) -> Program:
        """The program of the job; the user's functions are in it only on the driver, where they are called."""
        return self.packed.program

    def planner(self) -> Planner:
        """The planner of the job's epochs."""
        streams = {
            name: PlannedStream(source, self.watermarks[name], self.packed.times[name], self.aligned.get(name))
            for name, source in self.inputs.items()
        }
        return Planner(self.name, streams, self.packed, self.waits, self.until, self.begins)
