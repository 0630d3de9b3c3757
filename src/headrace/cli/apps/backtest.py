"""`headrace backtest`: the rules of an app over history."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in
from headrace.cli.places import Home, log_at, place

if TYPE_CHECKING:
    from headrace.ops.backtest.verdict import Compared, Labeled, Row
    from headrace.plan.plan import Output, Plan

_SHOWN = 20


def backtest(
    file: AppFile,
    since: Annotated[str | None, typer.Option("--since", help="Judge records from this event time on, or this long ago; else all.")] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", help="What should be found: a .csv, .ndjson or .parquet file, or a topic.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", help="The columns by which an alert matches a label; by default those in common.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", help="The sink or view with the alerts, if the app has several.")] = None,
    by: Annotated[str | None, typer.Option("--by", help="The columns that tell alerts apart, to compare versions.")] = None,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Run an app over the records in its streams, in this process, and judge its alerts. Nothing is written.

    Says how many alerts there would be, their precision and recall against --labels, and which are new or gone against the running job.
    """
    from headrace.core.clock import to_microseconds
    from headrace.core.errors import SettingsError
    from headrace.ops.backtest.labels import labels_of
    from headrace.ops.backtest.rerun import rerun
    from headrace.ops.backtest.verdict import compared, labeled

    app = app_in(file)
    plan, log = app.plan(), log_at(app.settings.home if home is None else home)
    moment = None if since is None else place(since)
    if moment is not None and not isinstance(moment, datetime):
        raise SettingsError(f"--since {since!r} is not a time", hint='give a time ("2026-01-01T12:00:00Z") or how long ago ("1 day")')
    begin, chosen = None if moment is None else to_microseconds(moment), _output(plan, output)
    made = rerun(plan, chosen, log, begin)
    judged = None if labels is None else labeled(made, labels_of(labels, log, begin), _names(on))
    versions = compared(made, chosen, log, begin, _names(by))
    counts = {"output": chosen.name, "records": made.records, "late": made.late, "dead_letters": made.dead_letters}
    if render.for_programs(as_json):
        render.record({**counts, "alerts": made.rows.height, **_labeled(judged), **_compared(versions)})
        for row in _changes(versions):
            render.record(row)
        return
    others = f"{made.late:,} late, {made.dead_letters:,} dead letters"
    render.words(f"{made.rows.height:,} rows of {chosen.name!r} from {made.records:,} records; {others}")
    _say(judged, versions)


def _output(plan: Plan, wanted: str | None) -> Output:
    """The output to judge: the one that is named, the only sink, or the only output."""
    from headrace.core.errors import PlanError

    named = [one for one in plan.outputs if wanted is None or one.name == wanted]
    sinks = [one for one in named if one.kind == "sink"]
    if len(named) != 1 and len(sinks) != 1:
        raise PlanError(
            f"app {plan.name!r} has no output {wanted!r}" if not named else f"app {plan.name!r} has {len(named)} outputs",
            hint=f"name one with --output: {', '.join(one.name for one in plan.outputs)}",
        )
    return named[0] if len(named) == 1 else sinks[0]


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(","))


def _labeled(judged: Labeled | None) -> dict[str, object]:
    if judged is None:
        return {}
    return {"on": judged.on, "labels": judged.labels, "found": judged.found, "precision": judged.precision, "recall": judged.recall}


def _compared(versions: Compared | None) -> dict[str, object]:
    if versions is None:
        return {}
    return {"by": versions.by, "running": versions.running, "new": len(versions.new), "gone": len(versions.gone)}


def _changes(versions: Compared | None) -> list[Row]:
    if versions is None:
        return []
    return [{"is": word, **row} for word, rows in (("new", versions.new), ("gone", versions.gone)) for row in rows]


def _say(judged: Labeled | None, versions: Compared | None) -> None:
    if judged is not None:
        shares = [f"{name} {'none' if share is None else f'{share:.4f}'}" for name, share in _shares(judged).items()]
        render.words(f"{judged.found:,} of {judged.labels:,} labels found, by {', '.join(judged.on)}: {', '.join(shares)}")
    if versions is None:
        render.words("the running version has written nothing to the log to compare with")
        return
    render.words(f"the running version has {versions.running:,}: {len(versions.new):,} new, {len(versions.gone):,} gone")
    changes = _changes(versions)
    if changes:
        render.table([{name: row[name] for name in ("is", *versions.by)} for row in changes[:_SHOWN]], as_json=False)
    if len(changes) > _SHOWN:
        render.words(f"... {len(changes) - _SHOWN:,} more; --json shows all")


def _shares(judged: Labeled) -> dict[str, float | None]:
    return {"precision": judged.precision, "recall": judged.recall}
