"""The parts of a pattern, as frozen nodes. They say which rows match; preference follows their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class PatternPart:
    """A part of a pattern."""

    def children(self) -> tuple[PatternPart, ...]:
        return ()

    def walk(self) -> Iterator[PatternPart]:
        yield self
        for child in self.children():
            yield from child.walk()

    @property
    def rows(self) -> int:
        """How many places for a row it has, once every repetition is written out."""
        return sum(child.rows for child in self.children())

    @property
    def optional(self) -> bool:
        """Whether it matches without a row."""
        return True


@dataclass(frozen=True)
class Variable(PatternPart):
    """One row for which the condition of the variable is true."""

    name: str

    @property
    def rows(self) -> int:
        return 1

    @property
    def optional(self) -> bool:
        return False


@dataclass(frozen=True)
class Absent(PatternPart):
    """No such row until the next matched one, or until the time of the match has passed; without a name, no row at all (`$`)."""

    name: str | None


@dataclass(frozen=True)
class Beginning(PatternPart):
    """`^`: no row of the key before, as far back as `within`."""


@dataclass(frozen=True)
class Chain(PatternPart):
    """Parts one after the other."""

    parts: tuple[PatternPart, ...]

    def children(self) -> tuple[PatternPart, ...]:
        return self.parts

    @property
    def optional(self) -> bool:
        return all(part.optional for part in self.parts)


@dataclass(frozen=True)
class Choice(PatternPart):
    """One of several; an earlier one is preferred."""

    options: tuple[PatternPart, ...]

    def children(self) -> tuple[PatternPart, ...]:
        return self.options

    @property
    def optional(self) -> bool:
        return any(option.optional for option in self.options)


@dataclass(frozen=True)
class Repeat(PatternPart):
    """A part `least` to `most` times, without an upper limit if `most` is None; greedy prefers more, reluctant fewer.

    A repetition beyond `least` that has no row is the last one.
    """

    part: PatternPart
    least: int
    most: int | None
    greedy: bool = True

    def children(self) -> tuple[PatternPart, ...]:
        return (self.part,)

    @property
    def rows(self) -> int:
        return self.part.rows * max(1, self.least, self.most or 0)

    @property
    def optional(self) -> bool:
        return self.least == 0 or self.part.optional


@dataclass(frozen=True)
class Excluded(PatternPart):
    """A part whose rows are matched and left out where all rows are shown."""

    part: PatternPart

    def children(self) -> tuple[PatternPart, ...]:
        return (self.part,)

    @property
    def optional(self) -> bool:
        return self.part.optional
