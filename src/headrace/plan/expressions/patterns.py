"""Java's regular expressions in Rust's syntax, for the part of the language where both mean the same.

Java's classes are ASCII, its dot excludes five line ends, its dollar also matches before a final line end; a construct without an exact
counterpart (look-around, back-references, word borders) is Untranslatable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.plan.expressions.syntax.nodes import Scalar

LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])$"
_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0B\f\r"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_MOST_REPEATS = 1000
_MEANING = set("\\^$.|?*+()[]{}")


class Untranslatable(ValueError):
    """The pattern has a construct that differs between both languages."""


def like_pattern(pattern: str, escape: str) -> tuple[Scalar, ...]:
    """A LIKE pattern as ("is" | "starts" | "ends" | "contains", text) or ("matches", regular expression).

    >>> like_pattern("50\\\\%%", "\\\\")
    ('starts', '50%')
    """
    parts = _like_parts(pattern, escape)
    texts = [part for part in parts if part not in (_ANY, _ONE)]
    shape = "".join("%" if part is _ANY else "_" if part is _ONE else "t" for part in parts)
    simple = {"": "is", "t": "is", "t%": "starts", "%t": "ends", "%t%": "contains", "%": "starts"}
    if shape in simple:
        return simple[shape], texts[0] if texts else ""
    signs = ("(?s:.*)" if part is _ANY else "(?s:.)" if part is _ONE else "".join(map(_literal, part)) for part in parts)
    return "matches", "^" + "".join(signs) + "$"


_ANY, _ONE = "\0any", "\0one"


def _like_parts(pattern: str, escape: str) -> list[str]:
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == escape:
            place += 1
            if place == len(pattern) or pattern[place] not in ("_", "%", escape):
                raise Untranslatable(f"the escape {escape!r} precedes neither %, _ nor itself")
            sign = pattern[place]
        elif sign in "%_":
            found = _ANY if sign == "%" else _ONE
            if not (found is _ANY and parts and parts[-1] is _ANY):
                parts.append(found)
            place += 1
            continue
        if parts and parts[-1] not in (_ANY, _ONE):
            parts[-1] += sign
        else:
            parts.append(sign)
        place += 1
    return parts


def plain_text(pattern: str) -> str:
    """The text that a regular expression stands for, or None where it is more than a text.

    >>> plain_text(r"a\\.b"), plain_text("a+")
    ('a.b', '')
    """
    bare = re.sub(r"\\([^a-zA-Z0-9])", r"\1", pattern)
    unescaped = re.sub(r"\\[^a-zA-Z0-9]", "", pattern)
    return "" if _MEANING & set(unescaped) else bare


@dataclass(frozen=True)
class Search:
    """A translated pattern: whether it has a dollar, the number of groups, whether it may match nothing, and whether a group is
    repeated."""

    expression: str
    dollar: bool
    groups: int
    empty: bool
    repeated_group: bool


def search_pattern(pattern: str) -> Search:
    """The pattern for a search anywhere in a text.

    >>> search_pattern(r"^(\\d+)-x").expression
    '^([0-9]+)\\\\x{2d}x'
    """
    flags = re.match(r"\(\?([is]+)\)", pattern)
    reader = _Pattern(pattern[flags.end() :] if flags else pattern, flags[1] if flags else "")
    whole = reader.whole()
    return Search(whole.text, reader.dollar, reader.groups, whole.empty, reader.repeated_group)


def _literal(sign: str) -> str:
    return sign if sign.isascii() and sign.isalnum() else f"\\x{{{ord(sign):x}}}"


@dataclass(frozen=True)
class _Piece:
    """A translated piece; `ends` when a dollar closes it, `size` the number of repetitions of its parts, `empty` if it may match
    nothing."""

    text: str
    ends: bool = False
    size: int = 1
    empty: bool = False
    grouped: bool = False


class _Pattern:
    """Reads one Java regular expression."""

    def __init__(self, pattern: str, flags: str) -> None:
        self._rest = pattern
        self._ignore_case = "i" in flags
        self._dot = "(?s:.)" if "s" in flags else _DOT
        self.dollar = False
        self.groups = 0
        self.repeated_group = False

    def whole(self) -> _Piece:
        found = self._alternatives()
        if self._rest:
            raise Untranslatable("a parenthesis is closed but was not opened")
        return found

    def _take(self, count: int = 1) -> str:
        if len(self._rest) < count:
            raise Untranslatable("it ends too early")
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def _alternatives(self) -> _Piece:
        pieces = [self._sequence()]
        while self._rest.startswith("|"):
            self._take()
            pieces.append(self._sequence())
        return _Piece(
            "|".join(piece.text for piece in pieces),
            any(piece.ends for piece in pieces),
            sum(piece.size for piece in pieces),
            any(piece.empty for piece in pieces),
            any(piece.grouped for piece in pieces),
        )

    def _sequence(self) -> _Piece:
        pieces: list[_Piece] = []
        while self._rest and self._rest[0] not in "|)":
            if pieces and pieces[-1].ends:
                raise Untranslatable("a dollar before the end")
            pieces.append(self._repeated(self._atom()))
        return _Piece(
            "".join(piece.text for piece in pieces),
            bool(pieces) and pieces[-1].ends,
            sum(piece.size for piece in pieces),
            all(piece.empty for piece in pieces),
            any(piece.grouped for piece in pieces),
        )

    def _repeated(self, piece: _Piece) -> _Piece:
        match = re.match(r"(?:[*+?]|\{(\d{1,4})(?:,(\d{0,4}))?\})\??", self._rest)
        if match is None:
            if self._rest.startswith("{"):
                raise Untranslatable("a brace is not a repetition")
            return piece
        self._take(match.end())
        if piece.ends or self._rest[:1] in tuple("*+?{"):
            raise Untranslatable("this repetition")
        size = piece.size * max(int(match[1] or 1), int(match[2] or 1))
        if size > _MOST_REPEATS:
            raise Untranslatable("too many repetitions")
        self.repeated_group |= piece.grouped and match.group() != "?"
        none = match.group()[0] in "*?" or match[1] == "0"
        return _Piece(piece.text + match.group(), False, size, piece.empty or none, piece.grouped)

    def _atom(self) -> _Piece:
        sign = self._take()
        if sign == "\\":
            return _Piece(self._escape())
        if sign == "[":
            return _Piece(self._set())
        if sign == "(":
            return self._group()
        if sign == ".":
            return _Piece(self._dot)
        if sign == "^":
            if self._rest[:1] in tuple("*+?{"):
                raise Untranslatable("a repeated anchor")
            return _Piece("^", empty=True)
        if sign == "$":
            self.dollar = True
            return _Piece("$", ends=True, empty=True)
        if sign in "*+?{":
            raise Untranslatable(f"{sign!r} with nothing to repeat")
        return _Piece(self._sign(sign))

    def _group(self) -> _Piece:
        if self._rest.startswith("?") and not self._rest.startswith("?:"):
            raise Untranslatable("a special group")
        capturing = not self._rest.startswith("?:")
        self.groups += capturing
        if not capturing:
            self._take(2)
        inner = self._alternatives()
        if self._take() != ")":
            raise Untranslatable("a parenthesis is not closed")
        text = ("(" if capturing else "(?:") + inner.text + ")"
        return _Piece(text, inner.ends, inner.size, inner.empty, capturing or inner.grouped)

    def _sign(self, sign: str) -> str:
        if self._ignore_case and sign.isascii() and sign.isalpha():
            return f"[{sign.lower()}{sign.upper()}]"
        return _literal(sign)

    def _escape(self) -> str:
        sign = self._take()
        if sign.lower() in _CLASSES:
            return f"[{'^' if sign.isupper() else ''}{_CLASSES[sign.lower()]}]"
        return self._sign(self._escaped(sign))

    def _escaped(self, sign: str) -> str:
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign in "xu":
            digits = self._take(2 if sign == "x" else 4)
            if not re.fullmatch(r"[0-9a-fA-F]+", digits) or 0xD800 <= int(digits, 16) < 0xE000:
                raise Untranslatable("a character number")
            return chr(int(digits, 16))
        if sign.isascii() and sign.isalnum():
            raise Untranslatable(f"\\{sign}")
        return sign

    def _set(self) -> str:
        negated = self._rest.startswith("^")
        if negated:
            self._take()
        members: list[str] = []
        while not self._rest.startswith("]") or not members:
            members.append(self._member())
        self._take()
        return f"[{'^' if negated else ''}{''.join(members)}]"

    def _member(self) -> str:
        sign = self._take()
        if sign in "[]" or (sign == "&" and self._rest.startswith("&")):
            raise Untranslatable("a set inside a set")
        if sign == "\\":
            sign = self._take()
            if sign in _CLASSES:
                return _CLASSES[sign]
            sign = self._escaped(sign)
        if not re.match(r"-[^\]]", self._rest):
            return self._folded(sign, sign)
        self._take()
        last = self._take()
        last = self._escaped(self._take()) if last == "\\" else last
        if last in "[" or ord(last) < ord(sign):
            raise Untranslatable("a range in a set")
        return self._folded(sign, last)

    def _folded(self, first: str, last: str) -> str:
        members = _literal(first) if first == last else f"{_literal(first)}-{_literal(last)}"
        if self._ignore_case:
            inside = (chr(code) for code in range(ord(first), min(ord(last), 127) + 1))
            members += "".join(sign.swapcase() for sign in inside if sign.isalpha())
        return members
