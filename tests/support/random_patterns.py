"""Random patterns with conditions, each as text for the engine and as a function for the brute-force matcher."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.support.brute_patterns import Condition, Path, Sought, Story, Tree, written

NAMES = ("A", "B", "C", "D")
AFTER = ("past last row", "next row", "first B", "last B", "last A", "first A")


@dataclass(frozen=True)
class Drawn:
    """A pattern for both sides."""

    sought: Sought
    define: dict[str, str]
    where: str | None

    def options(self) -> dict[str, Any]:
        """The arguments of `stream.match`."""
        return {
            "by": "key", "pattern": written(self.sought.tree), "define": self.define, "within": f"{self.sought.within} seconds",
            "where": self.where, "after": self.sought.after, "skip": "others" if self.sought.relaxed else None,
        }  # fmt: skip


def drawn(chance: random.Random) -> Drawn:
    moving, absent, relaxed = chance.random() < 0.4, chance.random() < 0.3, chance.random() < 0.4
    while True:
        tree = _tree(chance, 3)
        if _optional(tree):
            continue
        if chance.random() < 0.1:
            tree = ("chain", [("^",), tree])
        if absent and relaxed and chance.random() < 0.5:
            tree = ("chain", [tree, ("not", chance.choice(NAMES)), ("var", chance.choice(NAMES))])
        elif absent:
            tree = ("chain", [tree, chance.choice([("not", chance.choice(NAMES)), ("$",)])])
        elif chance.random() < 0.05:
            tree = ("repeat", ("choice", [("chain", [tree, ("$",)]), ("var", chance.choice(NAMES))]), 1, None, chance.random() < 0.6)
        used = _names(tree)
        after = chance.choice(AFTER)
        if after.split()[-1] not in NAMES or after.split()[-1] in _taken(tree):
            break
    define, conditions = dict[str, str](), dict[str, Condition]()
    for name in sorted(used):
        if chance.random() < 0.85:
            text, condition = _condition(chance, name, sorted(used), moving)
            define[name], conditions[name] = text, condition
    where, holds = _where(chance, sorted(used)) if chance.random() < 0.35 else (None, lambda _story, _path: True)
    within = chance.choice([2, 5, 10, 30, 200])
    return Drawn(Sought(tree, conditions, within, relaxed, after, holds), define, where)


def _tree(chance: random.Random, depth: int) -> Tree:
    kind = chance.random()
    if depth == 0 or kind < 0.25:
        return ("var", chance.choice(NAMES))
    if kind < 0.5:
        return ("chain", [_tree(chance, depth - 1) for _ in range(chance.randrange(2, 4))])
    if kind < 0.63:
        return ("choice", [_tree(chance, depth - 1) for _ in range(2)])
    if kind < 0.67:
        return ("permute", [_tree(chance, 0) for _ in range(chance.randrange(2, 4))])
    if kind < 0.72:
        return ("except", _tree(chance, depth - 1))
    least, most = chance.choice([(0, None), (1, None), (0, 1), (2, None), (1, 2), (2, 3), (2, 2), (0, 2)])
    return ("repeat", _tree(chance, depth - 1), least, most, chance.random() < 0.6)


def _names(tree: Tree) -> set[str]:
    if tree[0] in ("var", "not"):
        return {tree[1]}
    inner = [tree[1]] if tree[0] in ("repeat", "except") else tree[1] if tree[0] in ("chain", "choice", "permute") else []
    return set().union(*(_names(part) for part in inner))


def _taken(tree: Tree) -> set[str]:
    if tree[0] == "var":
        return {tree[1]}
    return set() if tree[0] == "not" else set().union(*(_taken(part) for part in _parts(tree)))


def _parts(tree: Tree) -> list[Tree]:
    if tree[0] in ("repeat", "except"):
        return [tree[1]]
    return tree[1] if tree[0] in ("chain", "choice", "permute") else []


def _optional(tree: Tree) -> bool:
    if tree[0] == "var":
        return False
    if tree[0] == "repeat":
        return tree[2] == 0 or _optional(tree[1])
    if tree[0] == "choice":
        return any(_optional(part) for part in tree[1])
    return all(_optional(part) for part in _parts(tree))


def _condition(chance: random.Random, name: str, names: list[str], moving: bool) -> tuple[str, Condition]:
    number, other = chance.randrange(1, 9), chance.choice(names)
    fixed: list[tuple[str, Condition]] = [
        (f"value > {number}", lambda s, r, _p: _value(s, r) is not None and _value(s, r) > number),
        (f"value <= {number}", lambda s, r, _p: _value(s, r) is not None and _value(s, r) <= number),
        ("tag = 'x'", lambda s, r, _p: s.rows[r]["tag"] == "x"),
        ("value % 2 = 0 or tag is null", lambda s, r, _p: s.rows[r]["tag"] is None or (_value(s, r) is not None and _value(s, r) % 2 == 0)),
        ("value > prev(value)", lambda s, r, p: _above(_value(s, r), _previous(s, r, p, 1))),
        ("prev(value, 2) is null", lambda s, r, p: _previous(s, r, p, 2) is None),
    ]
    over: list[tuple[str, Condition]] = [
        (f"value > last({other}.value)", lambda s, r, p: _above(_value(s, r), _nth(s.of(p, other, "value"), -1))),
        (f"{name}.value >= first({other}.value)", lambda s, r, p: _above(_value(s, r), _nth(s.of(p, other, "value"), 0), equal=True)),
        (f"count({name}.*) <= 2", lambda s, _r, p: len(s.of(p, name, "at")) <= 2),
        (f"coalesce(sum(value), 0) < {number * 4}", lambda s, _r, p: sum(x for x in s.of(p, None, "value") if x is not None) < number * 4),
        (f"value > avg({other}.value)", lambda s, r, p: _above(_value(s, r), _mean(s.of(p, other, "value")))),
        (f"count(distinct {name}.tag) < 2", lambda s, _r, p: len({x for x in s.of(p, name, "tag") if x is not None}) < 2),
        (f"value <=> last({name}.value, 1) is false", lambda s, r, p: _value(s, r) != _nth(s.of(p, name, "value"), -2)),
        (f"value > prev(value) or count({other}.*) = 1",
         lambda s, r, p: _above(_value(s, r), _previous(s, r, p, 1)) or len(s.of(p, other, "at")) == 1),
        (f"value < max({other}.value) + 2", lambda s, r, p: _above(_plus(_most(s.of(p, other, "value")), 2), _value(s, r))),
    ]  # fmt: skip
    return chance.choice(fixed + over if moving else fixed)


def _where(chance: random.Random, names: list[str]) -> tuple[str, Any]:
    name, number = chance.choice(names), chance.randrange(1, 4)
    found: list[tuple[str, Any]] = [
        (f"count({name}.*) >= {number}", lambda s, p: len(s.of(p, name, "at")) >= number),
        ("count(distinct tag) >= 2", lambda s, p: len({x for x in s.of(p, None, "tag") if x is not None}) >= 2),
        (f"last({name}.value) > first(value)", lambda s, p: _above(_nth(s.of(p, name, "value"), -1), _nth(s.of(p, None, "value"), 0))),
        ("sum(value) % 2 = 0", lambda s, p: any(x is not None for x in s.of(p, None, "value"))
         and sum(x for x in s.of(p, None, "value") if x is not None) % 2 == 0),
        ("value > 4", lambda s, p: _above(_value(s, p[-1][0]), 4)),
    ]  # fmt: skip
    return chance.choice(found)


def _value(story: Story, row: int) -> Any:
    return story.rows[row]["value"]


def _previous(story: Story, row: int, _path: Path, many: int) -> Any:
    """The value of an earlier row, unless that is longer ago than a match may be."""
    if row < many or story.rows[row]["at"] - story.rows[row - many]["at"] > story.rows[row]["within"]:
        return None
    return _value(story, row - many)


def _above(left: Any, right: Any, equal: bool = False) -> bool:
    return left is not None and right is not None and (left > right or (equal and left == right))


def _nth(values: list[Any], place: int) -> Any:
    return values[place] if -len(values) <= place < len(values) else None


def _mean(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _most(values: list[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


def _plus(value: Any, more: int) -> Any:
    return None if value is None else value + more
