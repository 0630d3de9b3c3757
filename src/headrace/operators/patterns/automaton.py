"""A pattern as an automaton: places for rows, and behind each place the places that may come next, preferred ones first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.plan.patterns.match import Pattern
from headrace.plan.patterns.parts import Absent, Beginning, Chain, Choice, Excluded, PatternPart, Repeat, Variable

END = -1
# The absence of any row.
ANY = -1


@dataclass(frozen=True)
class Place:
    """A place of the pattern that takes a row: the number of the variable whose condition is tested; `excluded` from what is shown."""

    variable: int
    excluded: bool = False


@dataclass(frozen=True)
class Successor:
    """What comes next: a row at a place, or the end. Until then no row may fit one of the `absent` variables."""

    place: int
    absent: frozenset[int] = frozenset()

    @property
    def done(self) -> bool:
        """Whether the match is complete, whatever comes."""
        return self.place == END and not self.absent


@dataclass(frozen=True)
class Automaton:
    """Places, what may follow each, and what a match begins with, at the beginning of a key's rows and elsewhere."""

    variables: tuple[str, ...]
    places: tuple[Place, ...]
    follow: tuple[tuple[Successor, ...], ...]
    begin: tuple[Successor, ...]
    begin_anchored: tuple[Successor, ...]
    relaxed: bool

    def starts(self, anchored: bool) -> tuple[Successor, ...]:
        return self.begin_anchored if anchored else self.begin


def automaton_of(pattern: Pattern) -> Automaton:
    """The automaton of a pattern."""
    variables = pattern.variables
    writer = _PatternWriter({name: number for number, name in enumerate(variables)})
    writer.write(pattern.root, False)
    writer.add(_Stop())
    closure = _Closure(writer.steps)
    follow = tuple(closure.behind(step + 1) for step in writer.taken)
    return Automaton(variables, tuple(writer.places), follow, closure.behind(0), closure.behind(0, anchored=True), pattern.relaxed)


@dataclass
class _Take:
    place: int


@dataclass
class _Fork:
    """Go on at both, the first preferred."""

    first: int = 0
    second: int = 0


@dataclass
class _Jump:
    to: int = 0


@dataclass
class _Watch:
    variable: int


@dataclass
class _Anchor:
    pass


@dataclass
class _Stop:
    pass


@dataclass
class _Enter:
    """A repetition that is not needed begins."""


@dataclass
class _Leave:
    """It ends: if it had no row, the last one."""

    entered: int
    out: int = 0


_Step = _Take | _Fork | _Jump | _Watch | _Anchor | _Stop | _Enter | _Leave


class _PatternWriter:
    """Writes a pattern out as steps, as for a machine that matches text."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.steps: list[_Step] = []
        self.places: list[Place] = []
        self.taken: list[int] = []
        self._numbers = numbers

    def add(self, step: _Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def write(self, part: PatternPart, excluded: bool) -> None:
        if isinstance(part, Variable):
            self.taken.append(self.add(_Take(len(self.places))))
            self.places.append(Place(self._numbers[part.name], excluded))
        elif isinstance(part, Absent):
            self.add(_Watch(ANY if part.name is None else self._numbers[part.name]))
        elif isinstance(part, Beginning):
            self.add(_Anchor())
        elif isinstance(part, Chain):
            for one in part.parts:
                self.write(one, excluded)
        elif isinstance(part, Choice):
            self._choose(part.options, excluded)
        elif isinstance(part, Excluded):
            self.write(part.part, True)
        else:
            assert isinstance(part, Repeat)
            self._repeat(part, excluded)

    def _choose(self, options: Sequence[PatternPart], excluded: bool) -> None:
        jumps = []
        for option in options[:-1]:
            fork = _Fork(len(self.steps) + 1)
            self.add(fork)
            self.write(option, excluded)
            jumps.append(_Jump())
            self.add(jumps[-1])
            fork.second = len(self.steps)
        self.write(options[-1], excluded)
        for jump in jumps:
            jump.to = len(self.steps)

    def _repeat(self, repeat: Repeat, excluded: bool) -> None:
        for _ in range(repeat.least - (repeat.most is None and repeat.least > 0)):
            self.write(repeat.part, excluded)
        if repeat.most is None:
            self._loop(repeat, excluded)
            return
        forks, leaves = [], list[_Leave]()
        for _ in range(repeat.most - repeat.least):
            forks.append(self._fork())
            leaves.append(self._once(repeat.part, excluded))
        for fork in forks:
            self._set(self.steps[fork], fork + 1, len(self.steps), repeat.greedy)
        for leave in leaves:
            leave.out = len(self.steps)

    def _loop(self, repeat: Repeat, excluded: bool) -> None:
        """Once and again, or not at all."""
        skip = None if repeat.least else self._fork()
        top = len(self.steps)
        leave = self._once(repeat.part, excluded)
        again = self._fork()
        self._set(self.steps[again], top, len(self.steps), repeat.greedy)
        leave.out = len(self.steps)
        if skip is not None:
            self._set(self.steps[skip], top, len(self.steps), repeat.greedy)

    def _once(self, part: PatternPart, excluded: bool) -> _Leave:
        leave = _Leave(self.add(_Enter()))
        self.write(part, excluded)
        self.add(leave)
        return leave

    def _fork(self) -> int:
        return self.add(_Fork())

    @staticmethod
    def _set(step: _Step, inside: int, outside: int, greedy: bool) -> None:
        assert isinstance(step, _Fork)
        step.first, step.second = (inside, outside) if greedy else (outside, inside)


class _Closure:
    """The successors of a step: everything that is reached without a row, each once, preferred ones first."""

    def __init__(self, steps: Sequence[_Step]) -> None:
        self._steps = steps

    def behind(self, step: int, *, anchored: bool = False) -> tuple[Successor, ...]:
        found: dict[Successor, None] = {}
        nothing: frozenset[int] = frozenset()
        seen: set[tuple[int, frozenset[int], frozenset[int]]] = set()
        stack = [(step, nothing, nothing)]
        while stack:
            here = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            number, absent, entered = here
            one = self._steps[number]
            if isinstance(one, _Take):
                if ANY not in absent:
                    found.setdefault(Successor(one.place, absent))
            elif isinstance(one, _Stop):
                found.setdefault(Successor(END, absent))
            elif isinstance(one, _Fork):
                stack += [(one.second, absent, entered), (one.first, absent, entered)]
            elif isinstance(one, _Jump):
                stack.append((one.to, absent, entered))
            elif isinstance(one, _Watch):
                stack.append((number + 1, absent | {one.variable}, entered))
            elif isinstance(one, _Enter):
                stack.append((number + 1, absent, entered | {number}))
            elif isinstance(one, _Leave):
                stack.append((one.out if one.entered in entered else number + 1, absent, entered))
            elif anchored:
                stack.append((number + 1, absent, entered))
        return tuple(found)
