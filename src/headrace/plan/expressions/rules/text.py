"""Typing of functions on strings."""

from __future__ import annotations

import pyarrow as pa

from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BINARY, BOOLEAN, INT, STRING
from headrace.plan.expressions.patterns import Search, Untranslatable, like_pattern, plain_text, search_pattern
from headrace.plan.expressions.site import LeftToSpark, Site, rule
from headrace.plan.expressions.terms import Constant, Term

_STRINGS = pa.list_(pa.field("element", STRING))


def _strings(site: Site, *terms: Term) -> list[Term]:
    """Arguments as text; a function that also accepts bytes leaves those to Spark."""
    if any(term.kind == BINARY for term in terms):
        raise LeftToSpark(f"{site.name} of bytes is evaluated by Spark")
    return [site.wants(term, STRING) for term in terms]


@rule("upper", "ucase", arguments=1)
@rule("lower", "lcase", arguments=1)
@rule("reverse", arguments=1)
def mapped(site: Site, terms: tuple[Term, ...]) -> Term:
    if site.name == "reverse" and kinds.array(terms[0].kind or STRING):
        raise LeftToSpark("reverse of an array is evaluated by Spark", terms[0].kind)
    return site.apply(STRING, *_strings(site, *terms))


@rule("trim", arguments=(1, 2))
@rule("ltrim", arguments=(1, 2))
@rule("rtrim", arguments=(1, 2))
def trimmed(site: Site, terms: tuple[Term, ...]) -> Term:
    """With two arguments, the characters to cut come first, as in `trim(both characters from text)`."""
    text = _strings(site, *reversed(terms))
    return site.apply(STRING, *text)


@rule("btrim", arguments=(1, 2))
def trimmed_both(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(STRING, *_strings(site, *terms), name="trim")


@rule("length", "char_length", "character_length", "len", arguments=1)
@rule("octet_length", arguments=1)
@rule("bit_length", arguments=1)
@rule("ascii", arguments=1)
def measured(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(INT, *_strings(site, *terms))


@rule("substring", "substr", arguments=(2, 3))
def cut(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(STRING, *_strings(site, terms[0]), *(site.wants(term, INT) for term in terms[1:]))


@rule("left", arguments=2)
@rule("right", arguments=2)
@rule("repeat", arguments=2)
def counted(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(STRING, *_strings(site, terms[0]), site.wants(terms[1], INT))


@rule("instr", arguments=2)
def found_at(site: Site, terms: tuple[Term, ...]) -> Term:
    text, part = _strings(site, *terms)
    return site.apply(INT, text, part)


@rule("locate", "position", arguments=(2, 3))
def located(site: Site, terms: tuple[Term, ...]) -> Term:
    part, text = _strings(site, *terms[:2])
    if len(terms) == 2:
        return site.apply(INT, text, part, name="instr")
    return site.apply(INT, text, part, site.wants(terms[2], INT), nullable=False)


@rule("replace", arguments=(2, 3))
def replaced(site: Site, terms: tuple[Term, ...]) -> Term:
    texts = _strings(site, *terms)
    old = site.literal(texts[1], "a searched text").value
    new = site.literal(texts[2], "a replacement").value if len(texts) == 3 else ""
    return _null_if(site, STRING, texts[0], old, new)


@rule("translate", arguments=3)
def translated(site: Site, terms: tuple[Term, ...]) -> Term:
    texts = _strings(site, *terms)
    source, target = (site.literal(term, "characters").value for term in texts[1:])
    return _null_if(site, STRING, texts[0], source, target)


def _null_if(site: Site, kind: pa.DataType, operand: Term, *options: object) -> Term:
    """The call, or null where one of its constants is."""
    given = [option for option in options if isinstance(option, str | int)]
    return site.apply(kind, operand, options=given) if len(given) == len(options) else site.constant(None, kind)


@rule("split_part", arguments=3)
def split_part(site: Site, terms: tuple[Term, ...]) -> Term:
    text, separator = _strings(site, *terms[:2])
    return site.apply(STRING, text, separator, site.wants(terms[2], INT))


@rule("split", arguments=(2, 3))
def split(site: Site, terms: tuple[Term, ...]) -> Term:
    text, pattern = _strings(site, *terms[:2])
    separator = site.literal(pattern, "a pattern").value
    if separator is None:
        return site.constant(None, _STRINGS)
    limit = -1
    if len(terms) == 3:
        given = site.literal(site.wants(terms[2], INT), "a limit").value
        if not isinstance(given, int):
            return site.constant(None, _STRINGS)
        limit = given
    words = plain_text(str(separator))
    if not words:
        raise LeftToSpark("split by a regular expression is evaluated by Spark", _STRINGS)
    return site.apply(_STRINGS, text, options=(words, limit))


@rule("startswith", arguments=2)
@rule("endswith", arguments=2)
@rule("contains", arguments=2)
def holds(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(BOOLEAN, *_strings(site, *terms))


@rule("lpad", arguments=(2, 3))
@rule("rpad", arguments=(2, 3))
def padded(site: Site, terms: tuple[Term, ...]) -> Term:
    texts = _strings(site, terms[0], *terms[2:])
    padding = site.literal(texts[1], "a padding").value if len(texts) == 2 else " "
    width = site.literal(site.wants(terms[1], INT), "a width").value
    return _null_if(site, STRING, texts[0], width, padding)


@rule("concat", arguments=(1, 100_000))
def joined(site: Site, terms: tuple[Term, ...]) -> Term:
    if any(kinds.array(term.kind) for term in terms if term.kind is not None):
        raise LeftToSpark("concat of arrays is evaluated by Spark")
    return site.apply(STRING, *_strings(site, *terms))


@rule("concat_ws", arguments=(1, 100_000))
def joined_with(site: Site, terms: tuple[Term, ...]) -> Term:
    if any(kinds.array(term.kind) for term in terms if term.kind is not None):
        raise LeftToSpark("concat_ws of arrays is evaluated by Spark", STRING)
    texts = _strings(site, *terms)
    return site.apply(STRING, *texts, nullable=texts[0].nullable)


@rule("like", arguments=(2, 3))
@rule("ilike", arguments=(2, 3))
def like(site: Site, terms: tuple[Term, ...]) -> Term:
    texts = _strings(site, *terms)
    pattern = site.literal(texts[1], "a pattern").value
    escape = texts[2].value if len(texts) == 3 and isinstance(texts[2], Constant) else "\\"
    if pattern is None:
        return site.constant(None, BOOLEAN)
    if not isinstance(escape, str) or len(escape) != 1:
        raise site.refuse("the escape of like is one character")
    if site.name == "ilike":
        pattern = _lowered(str(pattern), escape)
    try:
        options = like_pattern(str(pattern), escape)
    except Untranslatable as problem:
        raise site.refuse(f"the pattern of like cannot be read: {problem}") from problem
    return site.apply(BOOLEAN, texts[0], options=options)


def _lowered(pattern: str, escape: str) -> str:
    """Spark compares both sides in lower case; this is left to Spark beyond ASCII, and where the escape is a letter."""
    if not pattern.isascii() or escape.isalpha():
        raise LeftToSpark("ilike of letters beyond ASCII is evaluated by Spark", BOOLEAN)
    return pattern.lower()


@rule("rlike", "regexp", "regexp_like", arguments=2)
def matches(site: Site, terms: tuple[Term, ...]) -> Term:
    text, pattern = _strings(site, *terms)
    search = _search(site, pattern, BOOLEAN)
    return site.constant(None, BOOLEAN) if search is None else site.apply(BOOLEAN, text, options=(search.expression, search.dollar))


@rule("regexp_extract", arguments=(2, 3))
def extracted(site: Site, terms: tuple[Term, ...]) -> Term:
    text, pattern = _strings(site, *terms[:2])
    group = site.literal(site.wants(terms[2], INT), "a group").value if len(terms) == 3 else 1
    search = _search(site, pattern, STRING)
    if search is None or group is None:
        return site.constant(None, STRING)
    if search.dollar or search.repeated_group or not isinstance(group, int) or not 0 <= group <= search.groups:
        raise LeftToSpark("what this regular expression captures is decided by Java", STRING)
    return site.apply(STRING, text, options=(search.expression, group))


@rule("regexp_replace", arguments=(3, 4))
def replaced_matches(site: Site, terms: tuple[Term, ...]) -> Term:
    if len(terms) == 4:
        raise LeftToSpark("regexp_replace from a place on is evaluated by Spark", STRING)
    text, pattern, replacement = _strings(site, *terms)
    new = site.literal(replacement, "a replacement").value
    search = _search(site, pattern, STRING)
    if search is None or not isinstance(new, str):
        return site.constant(None, STRING)
    if search.dollar or search.empty or set(new) & set("$\\"):
        raise LeftToSpark("how this regular expression is replaced is decided by Java", STRING)
    return site.apply(STRING, text, options=(search.expression, new))


def _search(site: Site, pattern: Term, kind: pa.DataType) -> Search | None:
    """The pattern in the syntax used here with the same meaning, None for a null pattern."""
    expression = site.literal(pattern, "a pattern").value
    if expression is None:
        return None
    try:
        return search_pattern(str(expression))
    except Untranslatable as problem:
        raise LeftToSpark(f"regular expression {expression!r}: {problem}, which Java reads in its own way", kind) from problem
