"""Apps that change: a random app as data, random edits of it, and what must be true of each edit."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream

AGGREGATES = {
    "n": "count(*)", "total": "sum(price)", "least": "min(price)", "most": "max(price)", "pages": "count(distinct page)",
    "mean": "avg(price)", "dear": "sum(price) filter (where price > 3)", "last_page": "last(page)",
}  # fmt: skip
FILTERS = ("user < 'f'", "user != 'b'", "user >= 'c'")
USERS, PAGES = "abcdefgh", "xyz"
Aggs = tuple[tuple[str, str], ...]
App = TypeVar("App", bound=Declaration)


@dataclass(frozen=True)
class Step:
    """A step with state: its kind, its key, and its aggregates by name."""

    kind: str
    by: str = "user"
    aggs: Aggs = ()
    ttl: str = "1 hour"


@dataclass(frozen=True)
class Out:
    """A view or sink of a step, behind some filters."""

    step: str
    filters: tuple[str, ...] = ()
    sink: bool = False


@dataclass(frozen=True)
class Spec:
    """An app as data; the order of steps and outputs is that in which they are declared."""

    steps: Mapping[str, Step] = field(default_factory=dict)
    outputs: Mapping[str, Out] = field(default_factory=dict)
    delay: int = 20
    ahead: str = "1 hour"

    def app(self) -> Declaration:
        return self.declare(Declaration("evolving"))

    def declare(self, app: App) -> App:
        """Declare streams, steps and outputs in an app."""
        clicks = app.stream(
            "clicks", "user string, page string, price bigint, at timestamp", time="at",
            watermark=hr.bounded(f"{self.delay} seconds", max_ahead=self.ahead), late="drop",
        )  # fmt: skip
        made = {
            name: KINDS[step.kind](clicks, step) for name, step in self.steps.items() if any(o.step == name for o in self.outputs.values())
        }
        for name, output in self.outputs.items():
            stream = made[output.step]
            for condition in output.filters:
                stream = stream.where(condition)
            if output.sink:
                app.sink(stream, hr.log(f"{name}_topic"), name=name)
            else:
                app.view(name, stream)
        return app


def _window(clicks: Stream, step: Step, window: Any, **emit: Any) -> Stream:
    results = clicks.window(window, by=step.by).agg(**dict(step.aggs))
    return results.emit(**emit) if emit else results


def _group(clicks: Stream, step: Step) -> Stream:
    return clicks.group(step.by, ttl=step.ttl).agg(**dict(step.aggs))


KINDS: dict[str, Callable[[Stream, Step], Stream]] = {
    "group": _group,
    "tumbling": lambda clicks, step: _window(clicks, step, hr.tumbling("30 seconds")),
    "corrected": lambda clicks, step: _window(clicks, step, hr.tumbling("30 seconds"), until="1 minute"),
    "early": lambda clicks, step: _window(clicks, step, hr.tumbling("1 minute"), early="10 seconds", until="1 minute"),
    "hopping": lambda clicks, step: _window(clicks, step, hr.hopping("1 minute", every="20 seconds")),
    "session": lambda clicks, step: _window(clicks, step, hr.session("15 seconds"), until="30 seconds"),
    "sliding": lambda clicks, step: _window(clicks, step, hr.sliding("40 seconds")),
    "counting": lambda clicks, step: _window(clicks, step, hr.count_window(3)),
    "table": lambda clicks, step: clicks.to_table(step.by),
    "first": lambda clicks, step: clicks.dedup(step.by, ttl="30 seconds").to_table(step.by),
    "previous": lambda clicks, step: clicks.with_previous("price", by=step.by, ttl="1 minute").to_table(step.by),
    "best": lambda clicks, step: _group(clicks, step).top(3, by=step.aggs[0][0]),
}
AGGREGATING = ("group", "tumbling", "corrected", "early", "hopping", "session", "sliding", "counting", "best")
TABLES = ("group", "table", "first", "previous", "best")


def drawn(chance: random.Random) -> Spec:
    """An app with a few steps, each with a view or sink."""
    steps, outputs = {}, {}
    for number, kind in enumerate(chance.sample(list(KINDS), chance.randint(2, 4))):
        steps[f"s{number}"] = Step(kind, aggs=_aggs(chance) if kind in AGGREGATING else ())
        outputs[f"v{number}"] = Out(f"s{number}", sink=chance.random() < 0.2)
    return Spec(steps, outputs)


def _aggs(chance: random.Random) -> Aggs:
    names = chance.sample(list(AGGREGATES), chance.randint(2, 4))
    return tuple((name, AGGREGATES[name]) for name in names)


@dataclass(frozen=True)
class Edit:
    """A changed app. `refused`: it must be; None where it may be either. `fresh`: outputs that start anew."""

    spec: Spec
    said: str
    refused: bool | None = False


def edited(spec: Spec, chance: random.Random, number: int) -> Edit:
    """One random edit of an app."""
    return chance.choice(EDITS)(spec, chance, number) or Edit(spec, "nothing")


def _some(things: Mapping[str, Any], chance: random.Random) -> str:
    return chance.choice(list(things))


def _put(things: Mapping[str, Any], name: str, thing: Any) -> dict[str, Any]:
    return {**things, name: thing}


def add_view(spec: Spec, chance: random.Random, number: int) -> Edit:
    step = chance.choice([output.step for output in spec.outputs.values()])
    filters = (chance.choice(FILTERS),) if chance.random() < 0.5 else ()
    out = Out(step, filters, sink=chance.random() < 0.3)
    return Edit(replace(spec, outputs=_put(spec.outputs, f"new{number}", out)), f"add an output new{number} of {step}")


def remove_output(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    if len(spec.outputs) < 2:
        return None
    name = _some(spec.outputs, chance)
    return Edit(replace(spec, outputs={one: out for one, out in spec.outputs.items() if one != name}), f"remove {name}")


def rename_output(spec: Spec, chance: random.Random, number: int) -> Edit:
    name = _some(spec.outputs, chance)
    outputs = {(f"renamed{number}" if one == name else one): out for one, out in spec.outputs.items()}
    return Edit(replace(spec, outputs=outputs), f"rename {name} to renamed{number}")


def reorder(spec: Spec, chance: random.Random, number: int) -> Edit:
    steps, outputs = list(spec.steps.items()), list(spec.outputs.items())
    chance.shuffle(steps)
    chance.shuffle(outputs)
    return Edit(replace(spec, steps=dict(steps), outputs=dict(outputs)), "reorder")


def filter_output(spec: Spec, chance: random.Random, number: int) -> Edit:
    name = _some(spec.outputs, chance)
    out = replace(spec.outputs[name], filters=(*spec.outputs[name].filters, chance.choice(FILTERS)))
    return Edit(replace(spec, outputs=_put(spec.outputs, name, out)), f"filter {name}")


def _with_aggs(spec: Spec, name: str, aggs: Aggs, number: int) -> Spec:
    """Other aggregates of a step; outputs that are no tables get new names, as other columns need."""
    steps = _put(spec.steps, name, replace(spec.steps[name], aggs=aggs))
    table = spec.steps[name].kind in TABLES
    outputs = {
        (one if out.step != name or (table and not out.sink) else f"{one.partition('_')[0]}_{number}"): out
        for one, out in spec.outputs.items()
    }
    return replace(spec, steps=steps, outputs=outputs)


def _aggregating(spec: Spec, chance: random.Random) -> str | None:
    names = [name for name, step in spec.steps.items() if step.kind in AGGREGATING and any(o.step == name for o in spec.outputs.values())]
    return chance.choice(names) if names else None


def reorder_aggregates(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    name = _aggregating(spec, chance)
    if name is None:
        return None
    aggs = list(spec.steps[name].aggs)
    chance.shuffle(aggs)
    # A top is by its first aggregate.
    refused = None if spec.steps[name].kind == "best" else False
    return Edit(_with_aggs(spec, name, tuple(aggs), number), f"reorder aggregates of {name}", refused)


def rename_aggregates(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    """Swap the names of aggregates: what was called least is called most."""
    name = _aggregating(spec, chance)
    if name is None:
        return None
    names, texts = zip(*spec.steps[name].aggs, strict=True)
    aggs = tuple(zip(names[1:] + names[:1], texts, strict=True))
    return Edit(_with_aggs(spec, name, aggs, number), f"swap aggregates of {name}", None if spec.steps[name].kind == "best" else False)


def drop_aggregate(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    name = _aggregating(spec, chance)
    if name is None or len(spec.steps[name].aggs) < 2:
        return None
    gone = chance.choice(spec.steps[name].aggs)
    aggs = tuple(one for one in spec.steps[name].aggs if one != gone)
    kind = spec.steps[name].kind
    refused = kind in ("sliding", "counting", "best")
    return Edit(_with_aggs(spec, name, aggs, number), f"drop {gone[0]} of {name}", refused)


def add_aggregate(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    name = _aggregating(spec, chance)
    known = {text for _, text in spec.steps[name].aggs} if name is not None else set()
    others = (
        [(column, text) for column, text in AGGREGATES.items() if text not in known and column not in dict(spec.steps[name or ""].aggs)]
        if name
        else []
    )
    if name is None or not others:
        return None
    # An average has the state of others that may be there; the fingerprint is its own.
    return Edit(
        _with_aggs(spec, name, (*spec.steps[name].aggs, chance.choice(others)), number), f"add an aggregate to {name}", refused=True
    )


def change_key(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    names = [
        name for name, step in spec.steps.items() if step.kind in ("group", "tumbling", "session") and not _read_by_filters(spec, name)
    ]
    if not names:
        return None
    name = chance.choice(names)
    refused = any(out.step == name for out in spec.outputs.values())
    return Edit(replace(spec, steps=_put(spec.steps, name, replace(spec.steps[name], by="page"))), f"other key of {name}", refused)


def _read_by_filters(spec: Spec, name: str) -> bool:
    return spec.steps[name].by != "user" or any(out.step == name and out.filters for out in spec.outputs.values())


def add_step(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    kinds = [kind for kind in KINDS if all(step.kind != kind for step in spec.steps.values())]
    if not kinds:
        return None
    kind, name = chance.choice(kinds), f"s_new{number}"
    step = Step(kind, aggs=_aggs(chance) if kind in AGGREGATING else ())
    made = replace(spec, steps=_put(spec.steps, name, step), outputs=_put(spec.outputs, f"of_new{number}", Out(name)))
    # A group may be there already, behind a top.
    return Edit(made, f"add a step {kind}", refused=None)


def change_watermark(spec: Spec, chance: random.Random, number: int) -> Edit:
    return Edit(replace(spec, delay=chance.choice([5, 10, 40]), ahead=chance.choice(["1 hour", "2 hours"])), "other watermark")


def change_ttl(spec: Spec, chance: random.Random, number: int) -> Edit | None:
    names = [name for name, step in spec.steps.items() if step.kind == "group"]
    if not names:
        return None
    name = chance.choice(names)
    return Edit(
        replace(spec, steps=_put(spec.steps, name, replace(spec.steps[name], ttl=chance.choice(["30 minutes", "2 hours"])))),
        f"ttl of {name}",
    )


EDITS: tuple[Callable[[Spec, random.Random, int], Edit | None], ...] = (
    add_view, remove_output, rename_output, reorder, filter_output, reorder_aggregates, rename_aggregates, drop_aggregate,
    add_aggregate, change_key, add_step, change_watermark, change_ttl,
)  # fmt: skip


def records(chance: random.Random, epoch: int) -> list[dict[str, Any]]:
    """Some records of an epoch, out of order and now and then late."""
    return [
        {
            "user": chance.choice(USERS), "page": chance.choice(PAGES), "price": chance.randint(-3, 9),
            "at": f"2026-01-01T12:{epoch // 3:02}:{chance.randint(0, 59):02}Z",
        }
        for _ in range(chance.randint(1, 10))
    ]  # fmt: skip
