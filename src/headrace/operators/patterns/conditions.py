"""The conditions of variables as bits of a row: those of the row alone when it comes, those over rows before it when it has its turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import polars as pl

from headrace.operators.changes import TIME
from headrace.operators.expressions import REASON, Compiled
from headrace.operators.expressions import compile as compiled_form
from headrace.operators.frames import columns_of
from headrace.plan.patterns.formulas import PREVIOUS, Formula, Value
from headrace.plan.patterns.match import Pattern

# The bits of a row; whether it is the first of its key, as one more bit; the number of its key in an epoch.
BITS, KEY = "_match bits", "_match key"
ANCHORED = 1 << 62


@dataclass(frozen=True)
class Conditions:
    """The conditions of a pattern. Variables without one, and those that look at matched rows, have their bit set."""

    pattern: Pattern

    @property
    def lookback(self) -> int:
        """How many rows of a key before a row its conditions see."""
        offsets = [value.offset for _, formula in self.pattern.define for value in formula.values if value.kind == PREVIOUS]
        return max([*offsets, int(self.pattern.anchored)], default=0)

    @property
    def carried(self) -> list[Value]:
        """The values of earlier rows that are kept with a row, because conditions over matched rows need them."""
        moving = [formula for _, formula in self.pattern.define if not formula.fixed]
        return [value for formula in moving for value in formula.values if value.kind == PREVIOUS]

    def of_row(self, records: pl.DataFrame) -> tuple[pl.Series, pl.Series | None]:
        """The bits of records by themselves, and why they could not be told, null where they could."""
        always, wanted = self._of_row
        if not wanted:
            return pl.Series(BITS, np.full(records.height, always)), None
        found = records.select_seq(wanted)
        return found.get_column(BITS), found.get_column(REASON) if len(wanted) > 1 else None

    @cached_property
    def _of_row(self) -> tuple[int, list[pl.Expr]]:
        """The bits that every record has; and those of each with the reason of what cannot be told, where they depend on the record."""
        plain = {number: compiled_form(one.typed) for number, one in self._conditions if one.fixed and not one.values}
        unset = {*plain, *(number for number, one in self._conditions if one.fixed and one.values)}
        always = sum(1 << number for number in range(len(self.pattern.variables)) if number not in unset)
        bits = [pl.when(one.value).then(pl.lit(1 << number, pl.Int64)).otherwise(0) for number, one in plain.items()]
        errors = [one.error for one in plain.values() if one.error is not None]
        total = reduce(lambda left, right: left + right, bits, pl.repeat(always, pl.len(), dtype=pl.Int64))
        return always, [total.alias(BITS), *([pl.coalesce(errors).alias(REASON)] if errors else [])] if plain else []

    def over_rows(self, rows: pl.DataFrame, fresh: np.ndarray, within: int) -> tuple[pl.DataFrame, pl.Series | None]:
        """Rows by key and in their order, with the bits that depend on rows before, of the `fresh` ones; and why some cannot be told."""
        looking = [(number, one) for number, one in self._conditions if any(value.kind == PREVIOUS for value in one.values)]
        if not looking and not self.pattern.anchored:
            return rows, None
        bits, errors, reasons = list[pl.Expr](), list[pl.Expr](), None
        frame = rows.with_columns_seq(pl.Series("_match fresh", fresh))
        if self.pattern.anchored:
            bits.append(pl.when(_before(1, within)).then(0).otherwise(pl.lit(ANCHORED, pl.Int64)))
        for number, formula in looking:
            frame, faults = _beside(frame, [value for value in formula.values if value.kind == PREVIOUS], within)
            errors += faults
            if formula.fixed:
                finish = self._finished[number]
                frame = frame.with_columns_seq(_full(finish.value).alias(f"_match true {number}"), *_error(finish, number))
                bits.append(pl.when(pl.col(f"_match true {number}")).then(pl.lit(1 << number, pl.Int64)).otherwise(0))
                errors += [] if finish.error is None else [pl.col(f"_match wrong {number}")]
        total = reduce(lambda left, right: left + right, bits, pl.col(BITS))
        if errors:
            # What cannot be told is a dead letter, and no part of a match.
            wrong = pl.coalesce(errors)
            total = pl.when(wrong.is_null()).then(total).otherwise(0)
            reasons = frame.select_seq(pl.when(pl.col("_match fresh")).then(wrong)).to_series()
        frame = frame.with_columns_seq(pl.when(pl.col("_match fresh")).then(total).otherwise(pl.col(BITS)).alias(BITS))
        return columns_of(frame, rows.columns), reasons

    @cached_property
    def _conditions(self) -> list[tuple[int, Formula]]:
        names = self.pattern.variables
        return [(names.index(name), formula) for name, formula in self.pattern.define]

    @cached_property
    def _finished(self) -> dict[int, Compiled]:
        """The conditions that are the same for a row in every match, by the numbers of their variables."""
        return {number: compiled_form(formula.typed) for number, formula in self._conditions if formula.fixed}


def _beside(frame: pl.DataFrame, values: Sequence[Value], within: int) -> tuple[pl.DataFrame, list[pl.Expr]]:
    """Rows with values of rows before them, for the fresh ones; others have theirs already."""
    errors, columns = list[pl.Expr](), dict[str, pl.Expr]()
    for value in values:
        assert value.row is not None
        name, compiled, there = value.placeholder, compiled_form(value.row), _before(value.offset, within)
        new = pl.when(there).then(_full(compiled.value).shift(value.offset))
        old = pl.when(pl.col("_match fresh")).then(new).otherwise(pl.col(name)) if name in frame.columns else new
        columns[name] = old
        if compiled.error is not None:
            columns[f"_match wrong {name}"] = pl.when(there).then(compiled.error.shift(value.offset))
            errors.append(pl.col(f"_match wrong {name}"))
    return frame.with_columns_seq(column.alias(name) for name, column in columns.items()), errors


def _before(offset: int, within: int) -> pl.Expr:
    """Whether the row at this distance before is of the same key, and not too long ago."""
    near = pl.col(TIME) - pl.col(TIME).shift(offset) <= within
    return (near & (pl.col(KEY) == pl.col(KEY).shift(offset))).fill_null(False)


def _full(value: pl.Expr) -> pl.Expr:
    return pl.when(pl.int_range(pl.len()) >= 0).then(value)


def _error(compiled: Compiled, number: int) -> list[pl.Expr]:
    return [] if compiled.error is None else [_full(compiled.error).alias(f"_match wrong {number}")]
