"""A plan as a picture: an SVG with sources on the left, steps by level, views and sinks on the right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from headrace.plan.nodes import Node
from headrace.plan.plan import Plan

_WIDTH, _HEIGHT, _ACROSS, _DOWN, _MARGIN = 176, 46, 40, 16, 8
_LETTERS = 25


@dataclass(frozen=True)
class Box:
    """A node or output of the picture."""

    name: str
    words: str
    reads: tuple[str, ...]


def picture(boxes: Sequence[Box]) -> str:
    """Boxes and the lines between them. Each box stands one level behind the last of those that it reads."""
    places = _placed(boxes)
    wide = max(x for x, _ in places.values()) + _WIDTH + _MARGIN
    high = max(y for _, y in places.values()) + _HEIGHT + _MARGIN
    lines = [_line(places[before], places[box.name]) for box in boxes for before in box.reads if before in places]
    drawn = [_drawn(box, places[box.name]) for box in boxes]
    style = "max-width:100%;height:auto;font:12px system-ui,sans-serif"
    label = escape("plan: " + ", ".join(box.name for box in boxes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}" style="{style}">{"".join([*lines, *drawn])}</svg>'
    )


def of_node(node: Node) -> str:
    """A stream or table and everything that it is made of."""
    return picture(list(dict.fromkeys(_boxes(node))))


def of_plan(plan: Plan) -> str:
    """All steps of a plan, and its views and sinks."""
    outputs = [Box(output.name, output.does, (output.node.name,)) for output in plan.outputs]
    return picture([*(_box(node) for node in plan.nodes), *outputs])


def _boxes(node: Node) -> Iterator[Box]:
    for before in node.inputs:
        yield from _boxes(before)
    yield _box(node)


def _box(node: Node) -> Box:
    return Box(node.name, "stream" if node.declared_stream else node.does, tuple(before.name for before in node.inputs))


def _placed(boxes: Sequence[Box]) -> dict[str, tuple[int, int]]:
    levels: dict[str, int] = {}
    for box in boxes:
        levels[box.name] = 1 + max((levels.get(before, -1) for before in box.reads), default=-1)
    taken, places = Counter[int](), dict[str, tuple[int, int]]()
    for box in boxes:
        level = levels[box.name]
        # A box stands no higher than what it reads, so that a chain is a straight line.
        row = max([taken[level], *((places[before][1] - _MARGIN) // (_HEIGHT + _DOWN) for before in box.reads[:1] if before in places)])
        taken[level] = row + 1
        places[box.name] = (_MARGIN + level * (_WIDTH + _ACROSS), _MARGIN + row * (_HEIGHT + _DOWN))
    return places


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH, start[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    bend = max(16, (x2 - x1) // 2)
    path = f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".4" stroke-width="1.5"/>'


def _drawn(box: Box, place: tuple[int, int]) -> str:
    x, y = place
    shape = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    name = f'<text x="{x + 10}" y="{y + 19}" fill="currentColor" font-weight="600">{escape(_short(box.name, first=False))}</text>'
    words = f'<text x="{x + 10}" y="{y + 36}" fill="currentColor" fill-opacity=".7">{escape(_short(box.words, first=True))}</text>'
    return f"<g><title>{escape(f'{box.name}: {box.words}')}</title>{shape}{name}{words}</g>"


def _short(text: str, *, first: bool) -> str:
    """The first, or the last, letters of a text that is too long for a box."""
    if len(text) <= _LETTERS:
        return text
    return f"{text[: _LETTERS - 1]}…" if first else f"…{text[1 - _LETTERS :]}"
