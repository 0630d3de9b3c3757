"""The verdict of a backtest: precision and recall against labels, and what is new or gone against the version that runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from headrace.core.clock import to_datetime
from headrace.core.columns.schema import type_name
from headrace.core.errors import PlanError
from headrace.core.nearest import choices
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.operators.expressions.dtypes import dtype
from headrace.ops.backtest.labels import fitted
from headrace.ops.backtest.rerun import Rerun
from headrace.plan.plan import Output

Row = dict[str, Any]


@dataclass(frozen=True)
class Labeled:
    """Alerts compared with labels, by the columns `on`: how many there are of each, and how many labels were found."""

    on: tuple[str, ...]
    labels: int
    found: int
    alerts: int

    @property
    def precision(self) -> float | None:
        """The share of alerts that are right; None without alerts."""
        return self.found / self.alerts if self.alerts else None

    @property
    def recall(self) -> float | None:
        """The share of labels that were found; None without labels."""
        return self.found / self.labels if self.labels else None


@dataclass(frozen=True)
class Compared:
    """Alerts compared with those of the running version, by the columns `by`."""

    by: tuple[str, ...]
    running: int
    new: Sequence[Row]
    gone: Sequence[Row]


def labeled(made: Rerun, labels: pl.DataFrame, on: Sequence[str]) -> Labeled:
    """Compare alerts with labels; without `on`, by the columns that both have with one type. Each label is found by one alert at most."""
    labels = fitted(labels, made.columns)
    shared = tuple(on) or tuple(name for name in labels.columns if labels.schema[name] == made.rows.schema.get(name))
    for name in shared:
        if name not in labels.columns or name not in made.rows.columns:
            where, there = ("the labels", labels) if name not in labels.columns else ("the output", made.rows)
            raise PlanError(f"--on names {name!r}, which is not a column of {where}", hint=choices(name, there.columns, "columns there"))
        if labels.schema[name] != made.rows.schema[name]:
            raise PlanError(
                f"column {name!r} of the labels cannot be read as {type_name(made.columns.field(name).type)}, its type in the output",
                hint="write it in the labels as the output has it, or name other columns with --on",
            )
    if not shared:
        raise PlanError(
            "the labels and the output have no column in common",
            why="nothing says which alert is about which label",
            hint=f"columns of the labels: {', '.join(labels.columns)}; of the output: {', '.join(made.rows.columns)}",
        )
    wanted = labels.select(shared).with_columns(pl.int_range(pl.len()).over(shared).alias("_number"))
    have = made.rows.select(shared).with_columns(pl.int_range(pl.len()).over(shared).alias("_number"))
    found = wanted.join(have, on=[*shared, "_number"], how="semi", nulls_equal=True).height
    return Labeled(shared, labels.height, found, made.rows.height)


def compared(made: Rerun, output: Output, log: Log, since: int | None, by: Sequence[str]) -> Compared | None:
    """Compare alerts with those that the running version has written since then; None where these are not in the log.

    Without `by` they are compared by the columns that both have with one type.
    """
    running = _written(output, log, since)
    if running is None:
        return None
    plain = [name for name, kind in running.schema.items() if not kind.is_float() and not kind.is_nested()]
    names = tuple(by) or output.folds_by or tuple(plain)
    _refuse_columns(names, made, running)
    here, there = (frame.with_columns(pl.int_range(pl.len()).over(names).alias("_number")) for frame in (made.rows, running))
    new, gone = (
        one.join(other, on=[*names, "_number"], how="anti", nulls_equal=True).drop("_number").to_dicts()
        for one, other in ((here, there), (there, here))
    )
    return Compared(names, running.height, new, gone)


def _refuse_columns(names: Sequence[str], made: Rerun, running: pl.DataFrame) -> None:
    """Raise if alerts cannot be compared by some columns."""
    unknown = next((name for name in names if name not in made.rows.columns), None)
    if unknown is not None:
        raise PlanError(f"--by names {unknown!r}, which is not a column of the output", hint=choices(unknown, made.rows.columns, "columns"))
    missing = next((name for name in names if name not in running.columns), None)
    if missing is not None or not names:
        fact = "no column" if missing is None else f"no column {missing!r}"
        raise PlanError(
            f"the running version has written {fact} with the type of the output",
            why="nothing says which of its alerts are the same",
            hint=f"compare by others with --by: {', '.join(running.columns)}" if running.columns else "give the output a topic of its own",
        )


def _written(output: Output, log: Log, since: int | None) -> pl.DataFrame | None:
    """What the running version has written, in the columns that the output still has with their types."""
    if output.topic is None:
        return None
    try:
        known = log.topic(output.topic).columns
    except UnknownTopic:
        return None
    columns = [one.name for one in output.node.columns if one.name in known.names and dtype(known.field(one.name).type) == dtype(one.type)]
    rows = pl.DataFrame(log.snapshot(output.topic).table.select(columns) if output.folds_by else log.read(output.topic, columns=columns))
    # The time of an alert is its first column with one.
    moment = next((name for name, kind in rows.schema.items() if isinstance(kind, pl.Datetime)), None)
    return rows if since is None or moment is None else rows.filter(pl.col(moment) >= to_datetime(since))
