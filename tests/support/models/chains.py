"""Random chains of steps: each as it is declared, and as its model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.api.stream import Stream
from headrace.api.windows import calendar, count_window, custom, global_, hopping, session, sliding, tumbling
from tests.support.models.facts import Totals
from tests.support.models.keyed import CountWindow, Dedup, Group, Passing, Positive, Previous, Table, Top
from tests.support.models.rows import SECOND, Epoch, Relation, Row, Step, difference
from tests.support.models.windows import ACCUMULATING, DISCARDING, RETRACTING, Intervals, Panes, Sessions, Sliding, regular, whole

AGGREGATES = {"c": "count(*)", "v": "sum(v)", "m": "max(v)", "d": "count(distinct v)", "l": "last(v, true)"}
Declare = Callable[[Any], Any]
Kind = Callable[[random.Random, "Place"], "Link | None"]


@dataclass(frozen=True)
class Place:
    """What is known behind some steps: the keys that rows still have, what identifies a row, whether rows change, and how late they come.

    `unit` is how many seconds a unit of time has; `window` identifies the windows that rows are results of. `tabled`: they are rows of a
    table, which expire `ttl` after their time; `restates`: they repeat what others said; `endless`: they are results of one window for all
    time; `told`: they are changes of a table, or made of such; `split`: they are elements of an array, or made of such.
    """

    unit: int
    keys: tuple[str, ...] = ("k", "g")
    own: tuple[str, ...] = ()
    window: tuple[str, ...] = ()
    changing: bool = False
    lateness: int = 0
    tabled: bool = False
    restates: bool = False
    endless: bool = False
    ttl: int | None = None
    told: bool = False
    split: bool = False

    def time(self, units: int) -> int:
        return units * self.unit * SECOND

    def spelled(self, units: int | None) -> str | None:
        return None if units is None else f"{units * self.unit} seconds"


@dataclass(frozen=True)
class Link:
    """A step: how it is declared, in words and as code, its model, and what is known behind it."""

    words: str
    declare: Declare
    model: Step
    behind: Place


@dataclass
class Flow:
    """The models of links at work, one behind the other."""

    links: Sequence[Link]
    _known: list[Relation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = [Counter[Row]() for _ in self.links]

    def epoch(self, epoch: Epoch) -> Epoch:
        """What an epoch brings behind the last of them."""
        for place, link in enumerate(self.links):
            relation = link.model.epoch(epoch)
            if isinstance(link.model, Passing):
                epoch = link.model.narrowed(epoch)
            else:
                added, removed = difference(relation, self._known[place])
                epoch = replace(epoch, added=added, removed=removed)
            self._known[place] = relation
        return epoch

    @property
    def relation(self) -> Relation:
        """All rows that hold behind the last of them."""
        return self._known[-1]

    @property
    def late(self) -> int:
        return sum(link.model.late for link in self.links)


@dataclass(frozen=True)
class Chain:
    links: tuple[Link, ...]
    unit: int

    @property
    def words(self) -> str:
        return " -> ".join(link.words for link in self.links)

    @property
    def ordered(self) -> bool:
        """Whether the order of rows of one time matters, which the documents leave open."""
        return any(isinstance(link.model, Dedup | Previous | CountWindow | Table | Totals) for link in every(self.links))

    @property
    def in_partitions(self) -> bool:
        """Whether the order in which rows come matters only within the key of the stream."""
        return all("k" in link.model.by for link in every(self.links) if isinstance(link.model, Dedup))

    def declare(self, stream: Stream) -> Any:
        for link in self.links:
            stream = link.declare(stream)
        return stream


def every(links: Sequence[Link]) -> Iterator[Link]:
    """Links, and those of the chains that they join."""
    for link in links:
        yield link
        for flow in getattr(link.model, "flows", ()):
            yield from every(flow.links)


def chain(chance: random.Random, length: int) -> Chain:
    """A number of steps, each over the results of the one before it."""
    place = Place(chance.choice([1, 1, 1, 360]))
    return Chain(tuple(links(chance, length, place)), place.unit)


def links(
    chance: random.Random, length: int, place: Place, kinds: Sequence[Kind] = (), suits: Callable[[Kind, Place], bool] | None = None
) -> list[Link]:
    """Random steps behind a place; of `kinds`, where it `suits`."""
    found = list[Link]()
    while sum(not isinstance(link.model, Passing) for link in found) < length:
        if not place.restates and chance.random() < 0.15:
            found.append(Link("where(v > 0)", lambda stream: stream.where("v > 0"), Positive(), place))
        kind = chance.choice(kinds or KINDS)
        # Now and then what is refused, too: it must be, or be right.
        made = kind(chance, place) if (suits or fits)(kind, place) or chance.random() < 0.02 else None
        if made is not None:
            found.append(made)
            place = made.behind
    return found


def fits(kind: Kind, place: Place) -> bool:
    """Whether the documents allow a step behind others."""
    if kind is top:
        return place.tabled or bool(place.window)
    if kind in (table, group, dedup, previous) and not place.keys:
        return False
    if kind is table:
        return True
    if kind is group:
        return not place.restates
    over_changes = kind is windows or not place.changing
    return over_changes and not place.endless and not place.tabled and not place.restates


def some_keys(chance: random.Random, place: Place, *, nothing: float = 0) -> tuple[str, ...]:
    """Some of the keys; with a chance of `nothing`, where that is a key, too."""
    if not place.keys or chance.random() < nothing:
        return ()
    return tuple(sorted(chance.sample(place.keys, chance.randint(1, len(place.keys)))))


def some_ttl(chance: random.Random, place: Place) -> int | None:
    return chance.choice([None, 5, 10, 20, 40, 80])


def _micros(place: Place, units: int | None) -> int | None:
    return None if units is None else place.time(units)


def group(chance: random.Random, place: Place) -> Link:
    by, ttl = some_keys(chance, place), some_ttl(chance, place) if not place.changing else chance.choice([None, None, 80])
    return Link(
        f"group({by}, ttl={ttl})",
        lambda stream: stream.group(by, ttl=place.spelled(ttl)).agg(**AGGREGATES),
        Group(by, _micros(place, ttl)),
        replace(place, keys=by, own=by, window=(), changing=True, tabled=True, ttl=ttl),
    )


def table(chance: random.Random, place: Place) -> Link:
    by, ttl = some_keys(chance, place), some_ttl(chance, place)
    return Link(
        f"to_table({by}, ttl={ttl})",
        lambda stream: stream.to_table(by, ttl=place.spelled(ttl)),
        Table(by, _micros(place, ttl), place.changing, place.own),
        replace(place, own=by, window=(), changing=True, tabled=True, restates=False, ttl=ttl),
    )


def top(chance: random.Random, place: Place) -> Link | None:
    if not place.own:
        return None
    count, per = chance.randint(1, 3), place.window or chance.choice([(), place.own[:1]])
    return Link(
        f"top({count}, per={per})",
        lambda stream: stream.top(count, by="v", per=per),
        Top(count, per, place.own),
        replace(place, changing=True, restates=False),
    )


def dedup(chance: random.Random, place: Place) -> Link:
    by, ttl = some_keys(chance, place), some_ttl(chance, place)
    return Link(
        f"dedup({by}, ttl={ttl})",
        lambda stream: stream.dedup(by, ttl=place.spelled(ttl)),
        Dedup(by, _micros(place, ttl), place.lateness),
        replace(place, own=by if ttl is None else place.own),
    )


def previous(chance: random.Random, place: Place) -> Link:
    by, ttl = some_keys(chance, place), some_ttl(chance, place)
    return Link(
        f"with_previous({by}, ttl={ttl})",
        lambda stream: stream.with_previous("v", by=by, ttl=place.spelled(ttl)),
        Previous(by, place.lateness, ttl=_micros(place, ttl)),
        place,
    )


def counted(chance: random.Random, place: Place) -> Link:
    by, (records, every) = some_keys(chance, place, nothing=0.1), chance.choice([(1, 1), (2, 2), (3, 1), (4, 2)])
    return Link(
        f"count_window({records}, every={every}, by={by})",
        lambda stream: stream.window(count_window(records, every=every), by=by).agg(**AGGREGATES),
        CountWindow(by, place.lateness, records=records, every=every),
        replace(place, keys=by, own=(*by, "window_number"), window=()),
    )


def slid(chance: random.Random, place: Place) -> Link:
    by, length, until = some_keys(chance, place, nothing=0.1), chance.choice([3, 10, 30]), chance.choice([0, 0, 10, 40])
    emit = {"until": place.spelled(until)} if until else {}
    kept = place.lateness + place.time(until)
    return Link(
        f"sliding({length}, by={by}, until={until})",
        lambda stream: stream.window(sliding(place.spelled(length)), by=by).agg(**AGGREGATES).emit(**emit),
        Sliding(by, place.time(length), kept),
        replace(place, keys=by, own=(*by, "window_end"), window=("window_end",), changing=kept > 0, lateness=kept),
    )


@dataclass
class _Emit:
    """Random options of `emit`, in units."""

    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def drawn(cls, chance: random.Random, modes: Sequence[str]) -> _Emit:
        options: dict[str, Any] = {}
        if chance.random() < 0.3:
            options["early"] = chance.choice([3, 7, 20])
        if chance.random() < 0.3:
            options["every"] = chance.choice([1, 2, 3])
        if chance.random() < 0.5:
            options["until"] = chance.choice([5, 10, 40])
            if chance.random() < 0.4:
                options["late"] = chance.choice([4, 15])
        if chance.random() < 0.6:
            options["mode"] = chance.choice(modes)
        return cls(options)

    def declared(self, place: Place) -> dict[str, Any]:
        return {name: value if name in ("every", "mode") else place.spelled(value) for name, value in self.options.items()}

    def panes(self, place: Place, *, endless: bool = False) -> Panes:
        early, every, late, until = (self.options.get(name) for name in ("early", "every", "late", "until"))
        kept = 0 if endless else place.lateness + place.time(until or 0)
        again = bool(kept or early or every or until)
        mode = self.options.get("mode", RETRACTING) if again else RETRACTING
        return Panes(_micros(place, early), every, _micros(place, late), kept, mode)

    def behind(self, place: Place, by: tuple[str, ...], identity: tuple[str, ...], window: tuple[str, ...]) -> Place:
        panes = self.panes(place)
        again = bool(panes.kept or panes.early or panes.every)
        apart = ("revision",) if again and panes.mode == DISCARDING else ()
        changing, restates = place.changing or (again and panes.mode == RETRACTING), again and panes.mode == ACCUMULATING
        own = (*by, *identity, *apart)
        return replace(place, keys=by, own=own, window=window, changing=changing, lateness=panes.kept, restates=restates)


def windows(chance: random.Random, place: Place) -> Link:
    by = some_keys(chance, place, nothing=0.1)
    kind = chance.choice(["tumbling", "hopping", "custom", "global", "calendar" if place.unit == 360 else "tumbling"])
    emit = _Emit.drawn(chance, ["retracting"] if place.changing else ["discarding", "accumulating", "retracting"])
    if kind == "global" and chance.random() < 0.8:
        emit.options.setdefault("every", 1)
    size, hop = chance.choice([(20, 5), (15, 10), (10, 10)])
    length, offset = chance.choice([5, 10, 20]), chance.choice([0, 0, 3])
    seconds, micros = place.spelled, place.time
    window, model = {
        "tumbling": lambda: (tumbling(seconds(length), offset=seconds(offset)), regular(micros(length), micros(length), micros(offset))),
        "hopping": lambda: (hopping(seconds(size), every=seconds(hop)), regular(micros(size), micros(hop))),
        "calendar": lambda: (calendar("1 hour", zone="Europe/Berlin"), regular(micros(10), micros(10))),
        "custom": lambda: (custom(_uneven(place)), _unevenly(place)),
        "global": lambda: (global_(), whole),
    }[kind]()
    shape = {"tumbling": f"{length}, offset={offset}", "hopping": f"{size}, every={hop}"}.get(kind, "")
    identity = ("window_start",)
    return Link(
        f"{kind}({shape}, by={by}).emit({emit.options})",
        lambda stream: stream.window(window, by=by).agg(**AGGREGATES).emit(**emit.declared(place)),
        Intervals(by, emit.panes(place, endless=kind == "global"), windows=model),
        replace(emit.behind(place, by, identity, () if kind == "global" else identity), endless=kind == "global"),
    )


def sessions(chance: random.Random, place: Place) -> Link:
    by, gap, emit = some_keys(chance, place, nothing=0.1), chance.choice([3, 6, 10]), _Emit.drawn(chance, ["discarding", "retracting"])
    return Link(
        f"session({gap}, by={by}).emit({emit.options})",
        lambda stream: stream.window(session(place.spelled(gap)), by=by).agg(**AGGREGATES).emit(**emit.declared(place)),
        Sessions(by, emit.panes(place), gap=place.time(gap)),
        emit.behind(place, by, ("window_start", "window_end"), ()),
    )


KINDS: list[Kind] = [
    group, table, top, dedup, previous, counted, slid, windows, windows, windows, windows, sessions, sessions,
]  # fmt: skip


def _uneven(place: Place) -> Callable[[Any], tuple[Any, Any]]:
    """Windows of 10 and 20 units by turns."""

    def bounds(times: Any) -> tuple[Any, Any]:
        into = times.astype("int64") % place.time(30)
        start = times - into + (into >= place.time(10)) * place.time(10)
        return start, start + place.time(10) + (into >= place.time(10)) * place.time(10)

    return bounds


def _unevenly(place: Place) -> Callable[[int], list[tuple[int, int]]]:
    def found(time: int) -> list[tuple[int, int]]:
        first = time // place.time(30) * place.time(30)
        middle = first + place.time(10)
        return [(first, middle)] if time < middle else [(middle, first + place.time(30))]

    return found
