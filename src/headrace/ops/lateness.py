"""The lateness of a stream's records, what each bound would have lost, and which watermark fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any

from headrace.connectors.input import Input
from headrace.core.durations import microseconds, spelled
from headrace.engine.planning.observed_lateness import Times
from headrace.operators.event_time.lateness_histogram import Lateness, chosen_bound
from headrace.operators.event_time.watermark import StreamTime
from headrace.plan.watermarks import Watermark

_BOUNDS = ("0s", "1s", "5s", "10s", "30s", "1m", "5m", "10m", "1h", "6h", "1d")
_SHARE = 0.001
_FEW = 1_000


@dataclass(frozen=True)
class Study:
    """The lateness of a stream's records by partition, and the watermark it is declared with, if that is known."""

    partitions: Mapping[int, Lateness]
    declared: Watermark | None = None

    @property
    def whole(self) -> Lateness:
        return reduce(Lateness.plus, self.partitions.values(), Lateness())

    def distribution(self) -> Iterator[dict[str, Any]]:
        """A row for each partition, and one for all: the number of records, of those behind another, and their lateness."""
        for partition, lateness in self.partitions.items():
            yield {"partition": str(partition), **_figures(lateness)}
        if len(self.partitions) != 1:
            yield {"partition": "all", **_figures(self.whole)}

    def losses(self) -> Iterator[dict[str, Any]]:
        """The share that would have been late at some bounds, up to the first that loses nothing, and at the declared one."""
        whole = self.whole
        for text in _BOUNDS:
            lost = whole.beyond(microseconds(text))
            yield _loss(spelled(timedelta(microseconds=microseconds(text))), lost, whole)
            if not lost:
                break
        if self.declared is not None and whole.total:
            lost = sum(part.beyond(chosen_bound(self.declared, part)) for part in self.partitions.values())
            yield _loss(f"declared: {self.declared}", lost, whole)

    def advice(self) -> str:
        """Which watermark fits, in a sentence."""
        whole = self.whole
        if not whole.total:
            return "there is no record with an event time yet, so nothing can be advised"
        few = f", as far as {whole.total:,} records can tell" if whole.total < _FEW else ""
        if not whole.longest:
            return f"every partition is in the order of event time: watermark=hr.perfect() loses nothing{few}"
        usual, longest = (timedelta(microseconds=whole.bound(share)) for share in (_SHARE, 0))
        if longest <= 2 * usual:
            return f'watermark=hr.bounded("{spelled(longest)}") would have lost nothing{few}'
        return (
            f'watermark=hr.loss_budget({_SHARE:g}, max="{spelled(longest)}") would stay about {spelled(usual)} behind and lose at most '
            f'one record in a thousand, where hr.bounded("{spelled(longest)}") would have lost nothing{few}'
        )


def studied(times: Times, newest: int, declared: Watermark | None = None) -> Study:
    """The lateness of the newest records of each partition, judged by all earlier ones."""
    source: Input = times.source
    begin, end = source.beginning(), source.end()
    found = times.lateness_ahead(begin, end, StreamTime(), newest)
    return Study({partition: found.get(partition, Lateness()) for partition in sorted(end)}, declared)


def _figures(lateness: Lateness) -> dict[str, Any]:
    ranks = {f"p{100 * share:g}": timedelta(microseconds=lateness.quantile(share)) for share in (0.5, 0.9, 0.99, 0.999)}
    return {"records": lateness.total, "behind": lateness.beyond(0), **ranks, "max": timedelta(microseconds=lateness.longest)}


def _loss(bound: str, lost: int, whole: Lateness) -> dict[str, Any]:
    return {"bound": bound, "late": lost, "share": lost / whole.total if whole.total else 0.0}
