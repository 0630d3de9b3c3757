"""State that a changed program keeps: moved to its shards, without the columns of removed aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from headrace.operators.contract import Exported


def without(moved: Exported, aggregates: Sequence[str]) -> Exported:
    """State without the columns of some aggregates, at any depth: emitted panes have them, too."""
    return replace(moved, frames=_without(moved.frames, aggregates), everywhere=_without(moved.everywhere, aggregates))


def _without(frames: Mapping[str, pl.DataFrame], aggregates: Sequence[str]) -> dict[str, pl.DataFrame]:
    return {name: frame.select_seq(_kept(frame.schema.items(), pl.col, aggregates)) for name, frame in frames.items()}


def _kept(parts: Iterable[tuple[str, pl.DataType]], read: Callable[[str], pl.Expr], aggregates: Sequence[str]) -> list[pl.Expr]:
    """The columns of a frame, or the fields of a struct, that stay."""
    return [_shed(read(name), kind, aggregates).alias(name) for name, kind in parts if name.partition(".")[0] not in aggregates]


def _shed(value: pl.Expr, kind: pl.DataType, aggregates: Sequence[str]) -> pl.Expr:
    if not _has(kind, aggregates):
        return value
    if isinstance(kind, pl.List):
        return value.list.eval(_shed(pl.element(), kind.inner, aggregates))  # type: ignore[arg-type] # an instance, not a class
    assert isinstance(kind, pl.Struct)
    fields = [(field.name, field.dtype) for field in kind.fields]
    made = pl.struct(_kept(fields, value.struct.field, aggregates))  # type: ignore[arg-type]
    return pl.when(value.is_not_null()).then(made)


def _has(kind: object, aggregates: Sequence[str]) -> bool:
    if isinstance(kind, pl.List):
        return _has(kind.inner, aggregates)
    if isinstance(kind, pl.Struct):
        return any(field.name.partition(".")[0] in aggregates or _has(field.dtype, aggregates) for field in kind.fields)
    return False
