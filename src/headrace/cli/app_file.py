"""The app that a Python file declares, as commands take it: `app.py`, or `app.py:name` where it declares several."""

from __future__ import annotations

import runpy
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headrace.app import App

AppFile = Annotated[str, typer.Argument(metavar="FILE", help="The Python file that declares the app; FILE:NAME if it declares several.")]


def app_in(text: str, place: Path | None = None, *, creates: bool = False) -> App:
    """Run a file, without its `__main__` block, and return the app it declares; with a place, as a copy that lives there.

    Its topics are created only if `creates` is true.
    """
    from headrace.app import App, apart, only_declared
    from headrace.core.errors import PlanError

    path, _, wanted = text.partition(":")
    file = Path(path)
    if not file.is_file():
        raise PlanError(f"there is no file {path}", hint="name the Python file that declares the app")
    # As if the file itself were run: it can import its neighbors.
    sys.path.insert(0, str(file.resolve().parent))
    with apart(place) if place is not None else nullcontext(), nullcontext() if creates else only_declared():
        names = runpy.run_path(str(file), run_name="headrace_app")
    apps = {name: value for name, value in names.items() if isinstance(value, App) and wanted in ("", name, value.name)}
    distinct = {id(found): found for found in apps.values()}
    if len(distinct) != 1:
        declared = ", ".join(sorted({found.name for found in distinct.values()})) or "none"
        raise PlanError(
            f"{path} declares {len(distinct)} apps{f' called {wanted!r}' if wanted else ''}: {declared}",
            hint=f"name one of them: {path}:NAME" if distinct else 'declare one: app = hr.App("name")',
        )
    return next(iter(distinct.values()))
