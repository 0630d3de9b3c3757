"""Results of matches: their measures, and the places of their events."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.operators.aggregates.partials import FAULT
from headrace.operators.changes import TIME
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.frames import columns_of, rows_at
from headrace.operators.patterns.matcher import Matcher, Matches
from headrace.operators.patterns.rows import Paths
from headrace.operators.patterns.values import Evaluator, Sights
from headrace.plan.patterns.formulas import Formula
from headrace.plan.patterns.match import ALL, EVIDENCE, PLACES


@dataclass(frozen=True)
class Shown:
    """What is shown of a match: the columns of its rows, the measures, and of which rows (`one` or `all`)."""

    columns: tuple[str, ...]
    measures: tuple[tuple[str, Formula], ...]
    rows: str


class MatchResults:
    """Rows made of matches."""

    def __init__(self, shown: Shown, by: tuple[str, ...], matcher: Matcher) -> None:
        self._shown, self._by, self._matcher = shown, list(by), matcher
        names = matcher.automaton.variables
        self._measures = [(name, Evaluator(formula, names), formula) for name, formula in shown.measures]
        self._needs_whole = any(value.whole for _, formula in shown.measures for value in formula.values)
        self._excluded = np.array([place.excluded for place in matcher.automaton.places], bool)

    def of(self, matches: Matches, rows: pl.DataFrame, numbers: np.ndarray) -> pl.DataFrame:
        """The results of matches, with the moment at which each was certain as their time."""
        paths, moments = matches.paths, matches.moments
        if self._shown.rows == ALL:
            sights, moments = self._each(paths, numbers), np.repeat(moments, paths.sizes)
            shown = ~self._excluded[paths.places]
            evidence = _places(self._matcher, rows, Paths(paths.rows, paths.places, np.ones(len(paths.rows), np.int64)))
        else:
            sights = self._matcher.sights(paths, numbers)
            shown = np.ones(sights.count, bool)
            evidence = _places(self._matcher, rows, paths)
        found = [rows_at(columns_of(rows, self._shown.columns), sights.current), pl.DataFrame({TIME: moments})]
        faults = []
        for name, evaluator, _ in self._measures:
            value, fault = evaluator.evaluate(rows, sights)
            found.append(value.alias(name).to_frame())
            faults += [] if fault is None else [fault]
        found.append(evidence.alias(EVIDENCE).to_frame())
        made = pl.concat(found, how="horizontal").filter(pl.Series(shown))
        if not faults:
            return made
        reasons = pl.DataFrame([fault.alias(f"{number}") for number, fault in enumerate(faults)]).select_seq(
            pl.coalesce(pl.all()).alias(FAULT)
        )
        return made.hstack(reasons.filter(pl.Series(shown)))

    def failed(self, matches: Matches, keys: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
        """A result with a fault for each search that could not be made: its key, and nothing else."""
        numbers, moments, reasons = zip(*matches.failed, strict=True)
        kinds: dict[str, pl.DataType] = {name: rows.schema[name] for name in self._shown.columns if name not in self._by}
        kinds |= {name: dtype(formula.typed.type) for name, formula in self._shown.measures if formula.typed.type is not None}
        kinds[EVIDENCE] = dtype(PLACES)
        found = keys[np.array(numbers, np.int64)][self._by]
        return found.with_columns_seq(
            *(pl.lit(None, kind).alias(name) for name, kind in kinds.items()),
            pl.Series(TIME, moments, pl.Int64),
            pl.Series(FAULT, reasons, pl.String),
        )

    def _each(self, paths: Paths, numbers: np.ndarray) -> Sights:
        """Every matched row with the rows of its match up to it."""
        begins = np.repeat(np.cumsum(paths.sizes) - paths.sizes, paths.sizes)
        many = np.arange(len(paths.rows)) - begins + 1
        upto = Sights(len(paths.rows), *self._spread(paths, begins, many), paths.rows, np.repeat(numbers, paths.sizes))
        if not self._needs_whole:
            return upto
        owners, rows, variables = self._spread(paths, begins, np.repeat(paths.sizes, paths.sizes))
        return replace(upto, whole=Sights(upto.count, owners, rows, variables, paths.rows, upto.numbers))

    def _spread(self, paths: Paths, begins: np.ndarray, many: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        owners = np.repeat(np.arange(len(many)), many)
        inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many) + np.repeat(begins, many)
        return owners, paths.rows[inside], self._matcher.variables[paths.places[inside]]


def _places(matcher: Matcher, rows: pl.DataFrame, paths: Paths) -> pl.Series:
    """The variable, partition and offset of every row of each path."""
    names = pa.array(matcher.automaton.variables, pa.string())
    variables = names.take(pa.array(matcher.variables[paths.places])) if len(paths.rows) else pa.array([], pa.string())
    where = rows_at(columns_of(rows, [PARTITION, OFFSET]), paths.rows)
    parts = [variables, where.get_column(PARTITION).to_arrow().cast(pa.int32()), where.get_column(OFFSET).to_arrow()]
    struct = pa.StructArray.from_arrays(parts, ["variable", "partition", "offset"])
    offsets = pa.array(np.concatenate([[0], np.cumsum(paths.sizes)]), pa.int32())
    made = pl.from_arrow(pa.ListArray.from_arrays(offsets, struct))
    assert isinstance(made, pl.Series)
    return made.cast(dtype(PLACES))
