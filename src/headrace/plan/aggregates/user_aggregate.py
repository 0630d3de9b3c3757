"""Aggregates that the user writes: three steps, each over the columns of many groups at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import polars as pl

State = Mapping[str, "pl.Expr"]


class Aggregate(ABC):
    """An aggregate function of your own, vectorized: each step is a polars expression, evaluated for all groups together.

    `state` names the parts of a partial result with their Spark types, `returns` is the type of the result. Records may arrive in any order
    and any batches, so `merge` must not depend on either. `additive` says that every part of the state is a sum: then `merge` need not be
    written, and records can be removed again where the input is a changelog.

    >>> import polars as pl
    >>> class RootMeanSquare(Aggregate):
    ...     state = {"squares": "double", "count": "bigint"}
    ...     returns = "double"
    ...     additive = True
    ...
    ...     def partial(self, x):
    ...         return {"squares": (x * x).sum(), "count": x.count()}
    ...
    ...     def finish(self, state):
    ...         return (state["squares"] / state["count"]).sqrt()
    >>> readings = pl.DataFrame({"sensor": ["a", "a", "b"], "x": [3.0, 4.0, None]})
    >>> rms = RootMeanSquare()
    >>> parts = readings.group_by("sensor", maintain_order=True).agg(**rms.partial(pl.col("x")))
    >>> parts.select(rms.finish({"squares": pl.col("squares"), "count": pl.col("count")}).round(3)).to_series().to_list()
    [3.536, nan]
    """

    state: ClassVar[Mapping[str, str]] = {}
    returns: ClassVar[str] = ""
    additive: ClassVar[bool] = False

    @abstractmethod
    def partial(self, *values: pl.Expr) -> State:
        """The state of a group of records; an argument is one column of them, filtered, with its nulls."""

    def merge(self, state: State) -> State:
        """The merged state of several states, by default their sums."""
        return {name: part.sum() for name, part in state.items()}

    @abstractmethod
    def finish(self, state: State) -> pl.Expr:
        """The result of a state."""
