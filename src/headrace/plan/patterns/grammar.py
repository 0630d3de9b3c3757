"""The pattern language: row pattern recognition of SQL:2016, and `!x` for a row that does not come."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import permutations

from headrace.core.errors import PlanError
from headrace.plan.expressions.syntax.problems import marked
from headrace.plan.patterns.parts import Absent, Beginning, Chain, Choice, Excluded, PatternPart, Repeat, Variable

_TOKEN = re.compile(r"(?P<blank>\s+)|(?P<number>\d+)|(?P<name>[^\W\d]\w*)|(?P<sign>\{-|-\}|[(){}|*+?,^$!])")
# Every order of the parts is written out: six have 720.
_MOST_PERMUTED = 6
_MOST_PLACES = 2_000
_HINT = "A B, A | B, (A B)+, A{2,5}, A*?, PERMUTE(A, B), ^, $, {- A -} and !A are patterns"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int


def parse_pattern(text: str, where: str | None = None) -> PatternPart:
    """Read a pattern; `where` is the user's file and line, for errors.

    >>> parse_pattern("A{2,}? (B | C)").children()[0]
    Repeat(part=Variable(name='A'), least=2, most=None, greedy=False)
    """
    return _PatternReader(text, where).pattern()


def permuted(parts: tuple[PatternPart, ...]) -> PatternPart:
    """All orders of some parts; the order in which they are written is preferred.

    Orders that begin with the same variable share its place: six variables in any order have 1,956 places, not 4,320. A group may match
    in several ways, and each order tries all of them before the next order does: orders that begin with a group share nothing.
    """
    if len(parts) == 1:
        return parts[0]
    options = list[PatternPart]()
    for number, first in enumerate(parts):
        others = (*parts[:number], *parts[number + 1 :])
        behind = [permuted(others)] if isinstance(first, Variable) else [Chain(order) for order in permutations(others)]
        options += [Chain((first, *(rest.parts if isinstance(rest, Chain) else (rest,)))) for rest in behind]
    return Choice(tuple(options))


class _PatternReader:
    def __init__(self, text: str, where: str | None) -> None:
        if not isinstance(text, str):
            raise PlanError(f"pattern={text!r} is not a pattern", hint='write it as text: pattern="A{3,} B"', where=where)
        self._text, self._where = text, where
        self._tokens = self._read()
        self._next = 0

    def pattern(self) -> PatternPart:
        part = self._choice()
        if self._token.kind != "end":
            raise self._wrong("expected another part or the end")
        if part.rows > _MOST_PLACES:
            raise PlanError(
                f"pattern {self._text!r} has {part.rows:,} places for rows once its repetitions are written out",
                why="each is a state of the automaton",
                hint=f"at most {_MOST_PLACES:,}: smaller numbers in {{n,m}}, fewer parts in PERMUTE, or * with a condition on count(...)",
                where=self._where,
            )
        if part.optional:
            raise PlanError(
                f"pattern {self._text!r} matches without a row",
                why="there would be a match before every row",
                hint="let at least one row be needed: A+ in place of A*",
                where=self._where,
            )
        return part

    def _choice(self) -> PatternPart:
        options = [self._chain()]
        while self._accept("|"):
            options.append(self._chain())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _chain(self) -> PatternPart:
        parts: list[PatternPart] = []
        while self._token.kind == "name" or self._token.text in ("(", "^", "$", "!", "{-"):
            parts.append(self._repeated())
        if not parts:
            raise self._wrong("expected a variable, a group or !")
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _repeated(self) -> PatternPart:
        start, part = self._token.start, self._primary()
        if self._token.text not in ("*", "+", "?", "{"):
            return part
        if isinstance(part, Absent | Beginning):
            raise self._error(start, f"{self._text[start : self._token.start].strip()!r} cannot be repeated")
        least, most = self._times()
        part = Repeat(part, least, most, greedy=not self._accept("?"))
        if self._token.text in ("*", "+", "?", "{"):
            raise self._wrong("expected another part: a repetition of a repetition stands in brackets")
        return part

    def _times(self) -> tuple[int, int | None]:
        start, sign = self._token.start, self._take().text
        if sign != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        least = self._number()
        if self._accept(","):
            most = self._number()
            if least is None and most is None:
                raise self._error(start, "expected a number in the braces")
        elif least is None:
            raise self._wrong("expected a number")
        else:
            most = least
        if not self._accept("}"):
            raise self._wrong("expected '}'")
        if most is not None and (most == 0 or most < (least or 0)):
            raise self._error(start, f"{least or 0} to {most} times is never")
        return least or 0, most

    def _number(self) -> int | None:
        return int(self._take().text) if self._token.kind == "number" else None

    def _primary(self) -> PatternPart:
        token = self._take()
        if token.text == "^":
            return Beginning()
        if token.text == "$":
            return Absent(None)
        if token.text == "!":
            if self._token.kind != "name":
                raise self._wrong("expected the variable that must not come")
            return Absent(self._take().text)
        if token.text == "(":
            return self._closed(")")
        if token.text == "{-":
            return Excluded(self._closed("-}"))
        if token.text.lower() == "permute" and self._token.text == "(":
            return self._permute(token)
        return Variable(token.text)

    def _closed(self, sign: str) -> PatternPart:
        part = self._choice()
        if not self._accept(sign):
            raise self._wrong(f"expected {sign!r}")
        return part

    def _permute(self, token: _Token) -> PatternPart:
        self._take()
        parts = [self._choice()]
        while self._accept(","):
            parts.append(self._choice())
        if not self._accept(")"):
            raise self._wrong("expected ')'")
        if len(parts) > _MOST_PERMUTED:
            raise self._error(token.start, f"PERMUTE of {len(parts)} parts has too many orders: at most {_MOST_PERMUTED} parts")
        return permuted(tuple(parts))

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += token.kind != "end"
        return token

    def _accept(self, sign: str) -> bool:
        found = self._token.kind == "sign" and self._token.text == sign
        self._next += found
        return found

    def _read(self) -> list[_Token]:
        found, place = list[_Token](), 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None:
                raise self._error(place, f"{self._text[place]!r} has no meaning here")
            if match.lastgroup != "blank":
                found.append(_Token(str(match.lastgroup), match.group(), place))
            place = match.end()
        return [*found, _Token("end", "", len(self._text))]

    def _wrong(self, what: str) -> PlanError:
        token = self._token
        return self._error(token.start, f"{what}, found {'the end' if token.kind == 'end' else repr(token.text)}")

    def _error(self, place: int, what: str) -> PlanError:
        lines = "\n".join(f"  {line}" for line in marked(self._text, place).splitlines())
        return PlanError(f"cannot read the pattern at character {place + 1}: {what}\n{lines}", hint=_HINT, where=self._where)
