"""Messages about mistakes in an expression: the text, a mark under the place, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.core.errors import PlanError
from headrace.core.nearest import choices
from headrace.plan.expressions.syntax.nodes import Span


def marked(text: str, start: int, end: int | None = None) -> str:
    """The line of `text` that contains `start`, with a mark under it.

    >>> print(marked("a + + b", 4))
    a + + b
        ^
    """
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    line = text[first:] if last < 0 else text[first:last]
    width = max(1, min(end if end is not None else start + 1, first + len(line)) - start)
    return f"{line}\n{' ' * (start - first)}{'^' * width}"


def syntax_error(text: str, position: int, what: str, where: str | None) -> PlanError:
    """A text that is not an expression."""
    return PlanError(
        f"cannot read the expression at character {position + 1}: {what}\n{_indented(marked(text, position))}",
        hint="write it as in Spark SQL: upper(user), amount * 2 > 10, cast(at as date)",
        where=where,
    )


def type_error(text: str, span: Span, what: str, where: str | None, hint: str | None = None) -> PlanError:
    """An expression that Spark would refuse for its types."""
    return PlanError(f"{what}\n{_indented(marked(text, span.start, span.end))}", hint=hint, where=where)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> tuple[str, str]:
    """The fact and the hint for an unknown name."""
    return f"there is no {kind} {name!r}", choices(name, known, f"{kind}s there")


def _indented(block: str) -> str:
    return "\n".join("  " + line for line in block.splitlines())
