"""The tokens of Spark SQL: names, numbers, strings and signs, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.core.errors import PlanError
from headrace.plan.expressions.syntax.problems import syntax_error

_TOKEN = re.compile(
    r"""
    (?P<blank>   \s+ | --[^\n]* | /\*.*?\*/ )
  | (?P<string>  [rR]'[^']*' | [rR]"[^"]*"
               | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
  | (?P<hex>     [xX]'[^']*' )
  | (?P<quoted>  `(?:[^`]|``)+` )
  | (?P<number>  (?: (?:\d+\.\d*|\.\d+) (?:[eE][+-]?\d+)? (?:BD|[DF])?
                   | \d+[eE][+-]?\d+ (?:BD|[DF])?
                   | \d+ (?:BD|[LSYDF])? ) (?!\w) )
  | (?P<word>    \w+ )
  | (?P<sign>    <=> | >>> | <= | >= | <> | != | !> | !< | == | \|\| | :: | -> | => | << | >> | [-+*/%=<>!~&|^()\[\],.:?] )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|''|\"\"", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True)
class Token:
    """`kind` is string, hex, name (quoted or not), word, number, sign or end; `text` its value without quotes."""

    kind: str
    text: str
    start: int
    end: int

    def says(self, *words: str) -> bool:
        """True when this is one of the given keywords or signs, not a quoted name or a string."""
        return self.kind in ("word", "sign") and self.text.lower() in words


def tokens(text: str, where: str | None = None) -> list[Token]:
    """The tokens of `text`, closed by one of kind `end`.

    >>> [token.text for token in tokens("a >= 'it''s'")]
    ['a', '>=', "it's", '']
    """
    if not isinstance(text, str):
        raise PlanError(f"{text!r} is not an expression", hint='write it as text, in Spark SQL: "amount * 2 > 10"', where=where)
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise syntax_error(text, position, _unreadable(text[position]), where)
        kind = match.lastgroup or "blank"
        if kind != "blank":
            found.append(Token(kind, _value(kind, match.group()), match.start(), match.end()))
        position = match.end()
    found.append(Token("end", "", len(text), len(text)))
    return found


def _unreadable(sign: str) -> str:
    return f"the quote {sign} is not closed" if sign in "'\"`" else f"{sign!r} has no meaning here"


def _value(kind: str, text: str) -> str:
    if kind == "quoted":
        return text[1:-1].replace("``", "`")
    if kind == "hex":
        return text[2:-1]
    if kind == "string":
        return text[2:-1] if text[0] in "rR" else _unescape(text[1:-1], text[0])
    return text


def _unescape(body: str, quote: str) -> str:
    return _ESCAPE.sub(lambda match: _unescaped(match, quote), body)


def _unescaped(match: re.Match[str], quote: str) -> str:
    if match.group() == quote * 2:
        return quote
    short, long, octal, other = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    return _ESCAPED.get(other, other) if other else match.group()
