"""Formulas over matched rows, evaluated for many matches at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from headrace.operators.aggregates.arguments import aggregate_of
from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.partials import FAULT, ROWS, finishes, of_no_records, partial
from headrace.operators.changes import TIME
from headrace.operators.expressions import Compiled
from headrace.operators.expressions import compile as compiled_form
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.expressions import Typed
from headrace.plan.patterns.formulas import AGGREGATE, CLASSIFIER, FIRST, LAST, NUMBER, PREVIOUS, Formula, Value

_GROUP = "_match group"


@dataclass(frozen=True)
class Sights:
    """What formulas are evaluated for: `count` groups of matched rows, group by group (`owners`), with the variable of each row.

    `current` is the row each is evaluated at. `whole` has all rows of the match where `rows` has those up to the current one.
    """

    count: int
    owners: np.ndarray
    rows: np.ndarray
    variables: np.ndarray
    current: np.ndarray
    numbers: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    whole: Sights | None = None

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.owners, minlength=self.count)


class Evaluator:
    """A formula made ready. `names` are the variables of the pattern, by their numbers."""

    def __init__(self, formula: Formula, names: Sequence[str]) -> None:
        self._names = list(names)
        self._values = [(value, _ready(value)) for value in formula.values]
        self._finish = compiled_form(formula.typed)

    @property
    def values(self) -> list[Value]:
        """The values of the match that it sees."""
        return [value for value, _ in self._values]

    def evaluate(self, rows: pl.DataFrame, sights: Sights) -> tuple[pl.Series, pl.Series | None]:
        """The value for each group, and why it could not be computed, null where it was."""
        frame, faults = rows[sights.current], list[pl.Series]()
        made = []
        for value, ready in self._values:
            if value.kind == PREVIOUS:
                continue  # It is a column of its row, under this name.
            column, fault = self._value(value, ready, rows, sights)
            made.append(column.alias(value.placeholder))
            faults += [] if fault is None else [fault]
        frame = frame.with_columns_seq(made)
        found = frame.select_seq(_spread(self._finish.value).alias("value"), *_errors(self._finish))
        faults += [found.get_column(name) for name in found.columns[1:]]
        return found.get_column("value"), _first(faults)

    def _value(self, value: Value, ready: _Ready, rows: pl.DataFrame, sights: Sights) -> tuple[pl.Series, pl.Series | None]:
        if value.kind == NUMBER:
            return pl.Series(sights.numbers, dtype=pl.Int64), None
        seen = sights.whole if value.whole and sights.whole is not None else sights
        if value.kind == CLASSIFIER:
            variables = seen.variables[np.cumsum(seen.sizes) - 1]
            return pl.Series([self._names[one] for one in variables.tolist()], dtype=pl.String), None
        owners, taken = seen.owners, seen.rows
        if value.variable is not None:
            own = seen.variables == self._names.index(value.variable)
            owners, taken = owners[own], taken[own]
        if value.kind == AGGREGATE:
            return ready.aggregated(rows, owners, taken, seen.count)
        sizes = np.bincount(owners, minlength=seen.count)
        place = value.offset if value.kind == FIRST else sizes - 1 - value.offset
        there = (np.broadcast_to(place, sizes.shape) >= 0) & (place < sizes)
        assert value.kind in (FIRST, LAST)
        return ready.gathered(rows, taken, np.where(there, np.cumsum(sizes) - sizes + place, -1))


@dataclass(frozen=True)
class _Ready:
    """A value made ready: of one row, or of many."""

    row: Compiled | None = None
    kind: pl.DataType | None = None
    aggregate: EvaluatedCall | None = None
    arguments: tuple[tuple[str, Compiled], ...] = ()
    nothing: pl.Series | None = None
    """The aggregate of no rows."""

    def gathered(self, rows: pl.DataFrame, taken: np.ndarray, places: np.ndarray) -> tuple[pl.Series, pl.Series | None]:
        """The value of one row for each group; null where there is none (-1)."""
        assert self.row is not None
        there = places >= 0
        if not there.any():
            return pl.Series([None] * len(places), dtype=self.kind), None
        frame = rows[np.where(there, taken[places], taken[0])].with_columns_seq(pl.Series(_GROUP, there))
        shown = [pl.when(pl.col(_GROUP)).then(one) for one in (self.row.value, *([] if self.row.error is None else [self.row.error]))]
        found = frame.select_seq(one.alias(f"{number}") for number, one in enumerate(shown))
        return found.get_column("0"), found.get_column("1") if len(shown) > 1 else None

    def aggregated(self, rows: pl.DataFrame, owners: np.ndarray, taken: np.ndarray, count: int) -> tuple[pl.Series, pl.Series | None]:
        """The aggregate of the rows of each group, in the order of the match: rows of one time have an order, too."""
        aggregate = self.aggregate
        assert aggregate is not None
        assert self.nothing is not None
        frame = rows[taken]
        errors = [error for _, one in self.arguments for error in _errors(one)]
        frame = frame.select_seq(
            pl.int_range(pl.len(), dtype=pl.Int64).alias(TIME),
            *(_spread(one.value).alias(name) for name, one in self.arguments),
            *(error.alias(f"_error {n}") for n, error in enumerate(errors)),
        ).with_columns_seq(pl.Series(_GROUP, owners))
        made = partial(frame, (_GROUP,), (aggregate,)).select_seq(_GROUP, ROWS, *finishes((aggregate,)))
        wanted = pl.DataFrame({_GROUP: np.arange(count)})
        found = wanted.join(made, on=_GROUP, how="left", maintain_order="left")
        value = found.get_column(aggregate.name)
        if made.height < count and not self.nothing.null_count():
            known = pl.when(pl.col(ROWS).is_null()).then(pl.lit(self.nothing).first()).otherwise(pl.col(aggregate.name))
            value = found.select_seq(known.alias(aggregate.name)).to_series()
        faults = [found.get_column(FAULT)] if FAULT in found.columns else []
        for number in range(len(errors)):
            failed = frame.filter(pl.col(f"_error {number}").is_not_null()).unique(_GROUP, keep="first")
            if failed.height:
                faults.append(wanted.join(failed, on=_GROUP, how="left", maintain_order="left").get_column(f"_error {number}"))
        return value, _first(faults)


def _ready(value: Value) -> _Ready:
    if value.row is not None:
        return _Ready(compiled_form(value.row), dtype(value.type))
    if value.call is None:
        return _Ready()
    call = replace(value.call, placeholder=value.placeholder)
    names = tuple(f"{call.placeholder}.{place}" for place in range(len(call.arguments)))
    arguments: dict[str, Typed] = dict(zip(names, call.arguments, strict=True))
    condition = None
    if call.filter is not None:
        condition = f"{call.placeholder}.filter"
        arguments[condition] = call.filter
    aggregate = aggregate_of(call, names, condition, signed=False)
    kinds = [(name, dtype(typed.type)) for name, typed in arguments.items() if typed.type is not None]
    nothing = of_no_records((aggregate,), kinds).select_seq(finishes((aggregate,))[0]).to_series()
    compiled = tuple((name, compiled_form(typed)) for name, typed in arguments.items())
    return _Ready(aggregate=aggregate, arguments=compiled, nothing=nothing)


def _spread(value: pl.Expr) -> pl.Expr:
    """A value for every row, also where it is a constant."""
    return pl.when(pl.int_range(pl.len()) >= 0).then(value)


def _errors(compiled: Compiled) -> list[pl.Expr]:
    return [] if compiled.error is None else [_spread(compiled.error).alias("error")]


def _first(faults: Sequence[pl.Series]) -> pl.Series | None:
    """Of several reasons the first for each group; None where nothing went wrong."""
    faults = [fault for fault in faults if fault.null_count() < len(fault)]
    if not faults:
        return None
    return pl.DataFrame([fault.alias(f"{number}") for number, fault in enumerate(faults)]).select_seq(pl.coalesce(pl.all())).to_series()
