"""Pattern matching by its definition: every way in which rows fit a pattern, in the order of preference, the first that holds.

Written apart from the engine: patterns are trees of tuples, conditions are functions, and nothing is shared but the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

Tree = tuple[Any, ...]
Path = tuple[tuple[int, str], ...]
"""The rows of a match and the variable of each."""
Condition = Callable[["Story", int, Path], bool]
"""Of a row and a path that ends with it."""


@dataclass(frozen=True)
class Story:
    """The rows of one key in their order, each with `at` in seconds and its columns."""

    rows: Sequence[Mapping[str, Any]]

    def of(self, path: Path, variable: str | None, column: str) -> list[Any]:
        """The values of a column in the rows of a variable, or in all."""
        return [self.rows[row][column] for row, name in path if variable is None or name == variable]


@dataclass(frozen=True)
class Sought:
    """A pattern with its conditions; a variable without one takes any row."""

    tree: Tree
    conditions: Mapping[str, Condition]
    within: int
    relaxed: bool = False
    after: str = "past last row"
    where: Callable[[Story, Path], bool] = field(default=lambda _story, _path: True)


@dataclass(frozen=True)
class _State:
    row: int
    path: Path = ()
    unwanted: frozenset[str | None] = frozenset()


def written(tree: Tree) -> str:
    """A tree in the pattern language."""
    kind, *rest = tree
    if kind == "var":
        return str(rest[0])
    if kind == "not":
        return f"!{rest[0]}"
    if kind in ("^", "$"):
        return kind
    if kind == "chain":
        return " ".join(written(part) if part[0] != "choice" else f"({written(part)})" for part in rest[0])
    if kind == "choice":
        return " | ".join(written(part) for part in rest[0])
    if kind == "permute":
        return f"PERMUTE({', '.join(written(part) for part in rest[0])})"
    if kind == "except":
        return f"{{- {written(rest[0])} -}}"
    part, least, most, greedy = rest
    inner = written(part) if part[0] == "var" else f"({written(part)})"
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    times = short or (f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}")
    return f"{inner}{times}{'' if greedy else '?'}"


def matches(sought: Sought, story: Story) -> list[Path]:
    """All matches among the rows of a key."""
    found, start = list[Path](), 0
    while start < len(story.rows):
        path = next(_at(sought, story, start), None)
        if path is None:
            start += 1
            continue
        found.append(path)
        start = max(start + 1, _next(sought.after, path))
    return found


def _next(after: str, path: Path) -> int:
    if after == "past last row":
        return path[-1][0] + 1
    if after == "next row":
        return path[0][0] + 1
    which, name = after.split()
    rows = [row for row, variable in path if variable == name]
    return (rows[0] if which == "first" else rows[-1]) if rows else 0


def _at(sought: Sought, story: Story, start: int) -> Iterator[Path]:
    limit = story.rows[start]["at"] + sought.within
    for state in _ways(sought, story, sought.tree, _State(start), limit):
        rest = [row for row in range(state.row, len(story.rows)) if story.rows[row]["at"] <= limit]
        if any(_unwanted(sought, story, row, state) for row in rest if state.unwanted):
            continue
        if state.path and sought.where(story, state.path):
            yield state.path


def _ways(sought: Sought, story: Story, tree: Tree, state: _State, limit: int) -> Iterator[_State]:
    kind = tree[0]
    if kind == "var":
        yield from _taken(sought, story, tree[1], state, limit)
    elif kind in ("not", "$"):
        yield _State(state.row, state.path, state.unwanted | {tree[1] if kind == "not" else None})
    elif kind == "^":
        if state.path:
            return
        near = state.row > 0 and story.rows[state.row]["at"] - story.rows[state.row - 1]["at"] <= sought.within
        if not near:
            yield state
    elif kind == "chain":
        yield from _chained(sought, story, tree[1], state, limit)
    elif kind == "choice":
        for part in tree[1]:
            yield from _ways(sought, story, part, state, limit)
    elif kind == "permute":
        for order in permutations(tree[1]):
            yield from _chained(sought, story, order, state, limit)
    elif kind == "except":
        yield from _ways(sought, story, tree[1], state, limit)
    else:
        yield from _repeated(sought, story, tree, state, limit)


def _chained(sought: Sought, story: Story, parts: Sequence[Tree], state: _State, limit: int) -> Iterator[_State]:
    if not parts:
        yield state
        return
    for behind in _ways(sought, story, parts[0], state, limit):
        yield from _chained(sought, story, parts[1:], behind, limit)


def _repeated(sought: Sought, story: Story, tree: Tree, state: _State, limit: int, times: int = 0) -> Iterator[_State]:
    _, part, least, most, greedy = tree
    again = (
        later
        for behind in (_ways(sought, story, part, state, limit) if most is None or times < most else ())
        for later in (
            # A repetition that is not needed and has no row is the last.
            _repeated(sought, story, tree, behind, limit, times + 1) if times < least or len(behind.path) > len(state.path) else (behind,)
        )
    )
    if times < least:
        yield from again
    elif greedy:
        yield from again
        yield state
    else:
        yield state
        yield from again


def _taken(sought: Sought, story: Story, name: str, state: _State, limit: int) -> Iterator[_State]:
    if None in state.unwanted:
        return
    for row in range(state.row, len(story.rows)):
        if story.rows[row]["at"] > limit:
            return
        path = (*state.path, (row, name))
        if _fits(sought, story, row, path):
            yield _State(row + 1, path)
            return
        if not sought.relaxed or not state.path or _unwanted(sought, story, row, state):
            return


def _fits(sought: Sought, story: Story, row: int, path: Path) -> bool:
    condition = sought.conditions.get(path[-1][1])
    return condition is None or condition(story, row, path)


def _unwanted(sought: Sought, story: Story, row: int, state: _State) -> bool:
    """Whether a row is one that must not come."""
    return any(name is None or _fits(sought, story, row, (*state.path, (row, name))) for name in state.unwanted)
