"""ARCHITECTURE.md leads to files that exist, and its tree is the tree of the package."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import headrace.operators.kinds as kinds_of_operators
from headrace.engine.program.stateless_steps import steps_of
from headrace.plan.nodes import Node

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "headrace"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PLANNED = {"sql/", "eventsourcing/"}
MOST_MODULES = 20


def named_paths() -> list[str]:
    return sorted(set(re.findall(r"`([\w.-]+/[\w./-]*)`", TEXT)) - PLANNED)


def tree() -> list[Path]:
    """The entries of the tree in the text, as paths: two spaces for each level."""
    block = TEXT.split("```text\n")[1].split("```")[0]
    found, above = [], [ROOT]
    for line in block.splitlines():
        entry = re.match(r"( *)([\w.]+(?:/[\w.]+)*/?)(?: |$)", line)
        if entry and len(entry[1]) % 2 == 0 and len(entry[1]) <= 4:
            above = [*above[: len(entry[1]) // 2 + 1], above[len(entry[1]) // 2] / entry[2]]
            found.append(above[-1])
    return found


@pytest.mark.parametrize("path", named_paths())
def test_a_named_path_exists(path):
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


def test_every_entry_of_the_tree_exists():
    assert [str(path) for path in tree() if not path.exists()] == []


def test_every_folder_of_the_package_is_in_the_text():
    """A folder of a folder may be named in the line of the one above it; connectors have one line for all."""
    folders = [file.parent.relative_to(PACKAGE) for file in PACKAGE.rglob("__init__.py") if file.parent != PACKAGE]
    shown = {path.relative_to(PACKAGE) for path in tree() if path.is_relative_to(PACKAGE) and path != PACKAGE}
    missing = [
        folder
        for folder in folders
        if folder not in shown and folder.parts[0] != "connectors" and not re.search(rf"\b{folder.name}/", TEXT)
    ]
    assert sorted(map(str, missing)) == []


def test_no_package_has_more_than_twenty_modules():
    sizes = Counter(file.parent for file in PACKAGE.rglob("*.py") if file.name != "__init__.py")
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_each_class_name_occurs_once():
    names = Counter(
        node.name
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_code_asks_properties_of_nodes_not_their_classes():
    """The drawing of patterns is the one exception: there is nothing else that it could draw."""
    assert kinds_of_operators.__doc__, "imported for the nodes of every step"
    assert steps_of.__doc__, "imported for the nodes of every step"
    kinds = {kind.__name__ for kind in _subclasses(Node)}
    asked = [
        f"{file.name}:{node.lineno}"
        for file in PACKAGE.rglob("*.py")
        if file != PACKAGE / "operators" / "patterns" / "drawing.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        if kinds & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    ]
    assert asked == []


def _subclasses(kind: type) -> set[type]:
    below = set(kind.__subclasses__())
    return below.union(*map(_subclasses, below))


def _names(value: ast.expr, names: set[str]) -> bool:
    return ast.unparse(value).rpartition(".")[2] in names


@pytest.mark.parametrize("package", ["operators", "engine"])
def test_operators_ask_polars_on_one_thread(package):
    found = []
    for path in sorted((PACKAGE / package).rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)):
            asked = call.func
            # `pl.select` has no other form, and the frame within a frame (`_df`) has no threads.
            if isinstance(asked, ast.Attribute) and asked.attr in {"select", "with_columns"} and not _names(asked.value, {"pl", "_df"}):
                found.append(f"{path.relative_to(PACKAGE)}:{call.lineno}")
    assert found == []
