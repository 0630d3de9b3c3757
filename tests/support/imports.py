"""Import rules of the package, read from the source with `ast`."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOUNDATIONS = {"core", "log", "schema"}
DECLARE = {"plan", "api", "sql"}
RUN = {"operators", "engine", "checkpoint", "connectors", "spark"}
OPERATE = {"jobs", "ops", "eventsourcing"}
BELOW_SPARK = {"core", "log", "schema", "plan", "operators", "engine", "checkpoint", "connectors"}
EVERYTHING_BELOW_THE_SURFACE = FOUNDATIONS | DECLARE | RUN | OPERATE


@dataclass(frozen=True)
class Layer:
    """What a folder of the package may import: other folders of ours, and pyspark `never`, `inside functions` or `freely`."""

    ours: set[str]
    pyspark: str = "never"
    libraries: set[str] | None = None  # None: any


LAYERS = {
    "core": Layer(set(), libraries={"numpy", "pyarrow"}),
    "log": Layer({"core"}),
    "schema": Layer({"core"}),
    "plan": Layer({"core", "schema"}),
    "api": Layer({"core", "plan"}),
    "sql": Layer({"core", "plan"}),
    "operators": Layer({"core", "plan", "schema"}),
    "engine": Layer({"core", "plan", "schema", "operators"}),
    "checkpoint": Layer({"core", "engine"}),
    "connectors": Layer({"core", "plan", "log", "schema", "engine"}, pyspark="inside functions"),
    "spark": Layer(BELOW_SPARK, pyspark="freely"),
    "jobs": Layer(EVERYTHING_BELOW_THE_SURFACE, pyspark="freely"),
    "ops": Layer(EVERYTHING_BELOW_THE_SURFACE, pyspark="freely"),
    "eventsourcing": Layer(EVERYTHING_BELOW_THE_SURFACE, pyspark="freely"),
    "notebook": Layer({"core", "log"}),
    "serve": Layer(EVERYTHING_BELOW_THE_SURFACE, pyspark="freely"),
    "testing": Layer(EVERYTHING_BELOW_THE_SURFACE | {"serve"}, pyspark="freely"),
    "cli": Layer(EVERYTHING_BELOW_THE_SURFACE | {"serve", "testing"}, pyspark="inside functions"),
}

# Of the engine, some folders may know only what it asks of them or hands to them.
PARTS = {"connectors": {"engine": {"planning.input", "planning.input_loss"}}, "checkpoint": {"engine": {"planning.epoch_plan"}}}


@dataclass(frozen=True)
class Import:
    """One import statement: the module it names, its line, and whether a function holds it."""

    module: str
    line: int
    inside_function: bool


def forbidden_imports(package: Path) -> list[str]:
    """Every import that breaks the rules, as `file:line what`, and every folder without a rule."""
    return [
        f"{file.relative_to(package)}:{found.line} {wrong}"
        for file in sorted(package.rglob("*.py"))
        for found in imports_of(file, package)
        if (wrong := _broken_rule(package, file.relative_to(package), found))
    ]


def imports_of(file: Path, package: Path) -> Iterator[Import]:
    """Every import of a file, those in functions and those by `import_module("...")` too."""
    inside = package.name, *file.relative_to(package).parent.parts
    yield from _imports(ast.parse(file.read_text(encoding="utf-8"), file), inside, inside_function=False)


def _imports(node: ast.AST, inside: tuple[str, ...], *, inside_function: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(name.name, child.lineno, inside_function) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                origin = ".".join([*inside[: len(inside) - level + 1], *([module] if module else [])]) if level else module or ""
                # `from headrace import log` names a folder only in its list.
                yield from (Import(f"{origin}.{name.name}", child.lineno, inside_function) for name in names)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if "import_module" in ast.dump(child.func):
                yield Import(name, child.lineno, inside_function)
        deeper = inside_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(child, inside, inside_function=deeper)


def _broken_rule(package: Path, file: Path, found: Import) -> str | None:
    if len(file.parts) == 1:
        return _broken_rule_of_the_top(file, found)
    layer, top = file.parts[0], found.module.split(".")[0]
    if layer not in LAYERS:
        return f"is in the folder {layer}, which has no rule in tests/support/imports.py"
    rule = LAYERS[layer]
    if top == "headrace":
        return _broken_rule_among_us(package, file, found)
    if top in ("pyspark", "py4j"):
        allowed = rule.pyspark == "freely" or (rule.pyspark == "inside functions" and found.inside_function)
        return None if allowed else f"imports {found.module}; {layer} may do so {rule.pyspark}"
    if rule.libraries is not None and top not in rule.libraries | sys.stdlib_module_names | {"__future__"}:
        return f"imports {found.module}; {layer} may use the standard library and {', '.join(sorted(rule.libraries))} only"
    return None


def _broken_rule_of_the_top(file: Path, found: Import) -> str | None:
    if file.name == "__main__.py":
        return None
    if file.name == "app.py":
        # What the user declares, tied to the log it lives on and the job that runs it.
        target = (*found.module.split("."), "")[1]
        allowed = target in {"core", "log", "plan", "api", "jobs", "notebook"} or not found.module.startswith(("headrace", "pyspark"))
        return None if allowed else f"imports {found.module}"
    if file.name != "__init__.py":
        return "is a module outside of every folder"
    ours = found.module.startswith("headrace.")
    return None if ours or found.module.split(".")[0] in sys.stdlib_module_names else f"imports {found.module}"


def _broken_rule_among_us(package: Path, file: Path, found: Import) -> str | None:
    layer, rest, ours = file.parts[0], file.parts[1:], LAYERS[file.parts[0]].ours
    target, inner = (*found.module.split(".")[1:3], "", "")[:2]
    if target not in LAYERS:
        # The public names themselves: only the outermost folders may use them, the others would import in a circle.
        return None if layer in ("cli", "testing", "serve") else f"imports {found.module} instead of the module that has it"
    if target == layer == "connectors" and len(rest) > 1:
        shared = (package / "connectors" / f"{inner}.py").is_file()
        return None if shared or inner == rest[0] else f"imports {found.module}; connectors do not know each other"
    parts = PARTS.get(layer, {}).get(target)
    if parts is not None and not any(f"{found.module}.".startswith(f"headrace.{target}.{part}.") for part in parts):
        return f"imports {found.module}; of {target}, {layer} may import {', '.join(sorted(parts))}"
    if target in ours | {layer}:
        return None
    return f"imports {found.module}; {layer} may import {', '.join(sorted(ours)) or 'nothing of ours'}"
