"""The app that a Python file declares, as commands take it: `app.py`, or `app.py:name` where it declares several."""

from __future__ import annotations

import runpy
import sys
import sysconfig
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.core.errors import PlanError

_STANDARD = sysconfig.get_path("stdlib")

AppFile = Annotated[str, typer.Argument(metavar="FILE", help="The Python file that declares the app; FILE:NAME if it declares several.")]


def app_in(text: str, place: Path | None = None, *, creates: bool = False) -> App:
    """Run a file, without its `__main__` block, and return the app it declares; with a place, as a copy that lives there.

    Its topics are created only if `creates` is true.
    """
    from headrace.app import App, apart, only_declared
    from headrace.core.errors import HeadraceError, PlanError

    path, _, wanted = text.partition(":")
    file = Path(path)
    if not file.is_file():
        raise PlanError(f"there is no file {path}", hint="name the Python file that declares the app")
    # As if the file itself were run: it can import its neighbors.
    sys.path.insert(0, str(file.resolve().parent))
    with apart(place) if place is not None else nullcontext(), nullcontext() if creates else only_declared():
        try:
            names = runpy.run_path(str(file), run_name="headrace_app")
        except HeadraceError:
            raise
        except Exception as error:
            raise _failed(file, error) from error
    apps = {name: value for name, value in names.items() if isinstance(value, App) and wanted in ("", name, value.name)}
    distinct = {id(found): found for found in apps.values()}
    if len(distinct) != 1:
        declared = ", ".join(sorted({found.name for found in distinct.values()})) or "none"
        raise PlanError(
            f"{path} declares {len(distinct)} apps{f' called {wanted!r}' if wanted else ''}: {declared}",
            hint=f"name one of them: {path}:NAME" if distinct else 'declare one: app = hr.App("name")',
        )
    return next(iter(distinct.values()))


def _failed(file: Path, error: Exception) -> PlanError:
    """What an app file raised, at the deepest line that is not of Headrace or of an installed package."""
    from headrace.core.errors import PlanError
    from headrace.core.nearest import nearest

    fact, where = str(error), None
    if isinstance(error, SyntaxError):
        fact, where = f"{error.msg}: {(error.text or '').strip()}", f"{error.filename}:{error.lineno}"
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not isinstance(error, SyntaxError) and _written_by_user(frame.f_code.co_filename):
            where = f"{frame.f_code.co_filename}:{line}"
    hint = "headrace --debug ... shows the whole traceback"
    if isinstance(error, AttributeError | NameError) and error.name:
        near = nearest(error.name, dir(error.obj)) if isinstance(error, AttributeError) else None
        hint = (f"did you mean {near!r}? " if near else "") + hint
    if isinstance(error, ModuleNotFoundError):
        hint = f"install it for {sys.executable}; {hint}"
    return PlanError(f"{file} raises {type(error).__name__}: {fact}", hint=hint, where=where)


def _written_by_user(path: str) -> bool:
    package = str(Path(__file__).parents[1])
    return Path(path).is_file() and not path.startswith(package) and "site-packages" not in path and not path.startswith(_STANDARD)
