"""Random chains with more kinds of steps: changes as facts, elements of arrays, places in a top, and a function of the user's."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.support.models.chains import KINDS, Chain, Kind, Link, Place, fits, group, links, some_keys, some_ttl, table
from tests.support.models.facts import Changes, Elements, Totals, totals
from tests.support.models.keyed import Top

LONG = 80


def wide_chain(chance: random.Random, length: int) -> Chain:
    place = Place(chance.choice([1, 1, 1, 360]))
    return Chain(tuple(wide_links(chance, length, place)), place.unit)


def wide_links(chance: random.Random, length: int, place: Place) -> list[Link]:
    return links(chance, length, place, WIDE, _suits)


def _suits(kind: Kind, place: Place) -> bool:
    if kind is changes:
        # A row that expires in the epoch in which it came is inserted and deleted in it. The model sees neither, and a long ttl has none.
        return place.changing and bool(place.own) and place.ttl in (None, LONG) and not place.restates and not place.told
    if kind is elements:
        return not place.restates and not place.split
    if kind is ranked:
        return bool(place.own) and (place.tabled or bool(place.window))
    if kind is totaled:
        return bool(place.keys) and not (place.changing or place.endless or place.tabled or place.restates)
    return fits(next((plain for plain, wide in _OTHERS.items() if wide is kind), kind), place)


def changes(chance: random.Random, place: Place) -> Link | None:
    if not _suits(changes, place):
        return None
    return Link(
        "to_stream()",
        lambda stream: stream.to_stream(),
        Changes(place.own, None if place.ttl is None else place.time(place.ttl)),
        replace(place, keys=(*place.keys, "op"), own=(), window=(), changing=False, tabled=False, endless=False, ttl=None, told=True),
    )


def elements(chance: random.Random, place: Place) -> Link:
    return Link(
        "flat_map(array(v, v + 1))",
        lambda stream: stream.flat_map("array(v, v + 1)", into="e").with_columns(v="e"),
        Elements(),
        replace(place, own=(), split=True),
    )


def ranked(chance: random.Random, place: Place) -> Link | None:
    if not place.own:
        return None
    count, per = chance.randint(1, 3), place.window or chance.choice([(), place.own[:1]])
    return Link(
        f"top({count}, per={per}, rank=place)",
        lambda stream: stream.top(count, by="v", per=per, rank="place"),
        Top(count, per, place.own, "place"),
        replace(place, changing=True, restates=False),
    )


def totaled(chance: random.Random, place: Place) -> Link | None:
    if not place.keys:
        return None
    by, ttl = some_keys(chance, place), some_ttl(chance, place)
    columns = ", ".join(f"{name} string" for name in by)
    return Link(
        f"process(totals({by}), ttl={ttl})",
        lambda stream: stream.process(
            totals(by), by=by, state="c bigint, v bigint", returns=f"{columns}, c bigint, v bigint", ttl=place.spelled(ttl)
        ),
        Totals(by, place.lateness, ttl=None if ttl is None else place.time(ttl)),
        replace(place, keys=by, own=(), window=()),
    )


def of_facts(chance: random.Random, place: Place) -> Link | None:
    """A table of changes as facts has their `op` in its key; without it, it would undo `to_stream()`."""
    link = table(chance, place)
    return None if "op" in place.keys and "op" not in link.behind.own else link


def grouped(chance: random.Random, place: Place) -> Link:
    """A group over rows that change says an update also where its result is the same as before, which the model does not."""
    link = group(chance, place)
    return replace(link, behind=replace(link.behind, told=True)) if place.changing else link


_OTHERS: dict[Kind, Kind] = {table: of_facts, group: grouped}
WIDE: list[Kind] = [*(_OTHERS.get(kind, kind) for kind in KINDS), changes, changes, changes, elements, ranked, ranked, totaled, totaled]
