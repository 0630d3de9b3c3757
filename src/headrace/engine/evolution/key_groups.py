"""State moved between shards by key group: the exports of the old shards become what each new shard absorbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from headrace.engine.packet import shards_of
from headrace.operators.contract import Exported, Stateful


def spread(states: Sequence[Stateful], by: tuple[str, ...], shards: int) -> list[Exported]:
    """The state that each of the new shards absorbs of an operator; `states` are all its present shards, `by` the columns of its key."""
    parts = [state.export() for state in states]
    common = parts[0].common
    if any(part.common != common for part in parts):
        raise ValueError(f"shards differ in what is common to all keys: {[part.common for part in parts]}")
    frames: list[dict[str, pl.DataFrame]] = [{} for _ in range(shards)]
    keys = {name: part.by.get(name, by) for part in parts for name in part.frames}
    for name, key in keys.items():
        rows = pl.concat([part.frames[name] for part in parts if name in part.frames])
        places = pl.Series(shards_of(rows, key, shards))
        for shard in places.unique().sort().to_list():
            frames[shard][name] = rows.filter(places == shard)
    return [replace(parts[0], frames=found) for found in frames]
