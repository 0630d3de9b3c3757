"""The code blocks of the documents, run as a reader would run them: top to bottom, one folder a page.

A comment on the line before a block changes what happens to it:

- `<!-- file: app.py -->` writes the block to that file in the page's folder instead of running it;
- `<!-- run: no, <why>; covered by tests/.../test_x.py -->` leaves it alone, and the named test must exist.

`<!-- class: spark -->` anywhere on a page runs the page in that class of tests; `fast` is meant without it.
"""

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from headrace.core.settings import load_settings

ROOT = Path(__file__).parents[2]
RUN = ("python", "sh", "bash", "sql", "toml", "yaml")
SHOWN = ("text", "json", "mermaid")

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+)(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^ *(?P=fence) *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^ *<!-- *(file|run): *([^\n]*?) *-->\s*\Z", re.MULTILINE)
_CLASS = re.compile(r"<!-- *class: *(\w+) *-->")
_NOT_RUN = re.compile(r"no, .+; covered by (?P<test>\S+)")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the comment before it, if any."""

    page: Path
    line: int
    language: str
    text: str
    file: str | None
    run: str | None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages(root: Path = ROOT) -> list[Path]:
    """README.md, docs/**/*.md and apps/*/README.md, as far as they exist."""
    found = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("apps/*/README.md")]
    return sorted(page for page in found if page.is_file())


def pages_of(kind: str) -> list[Path]:
    """The pages that a class of tests runs."""
    return [page for page in pages() if class_of(page) == kind]


def class_of(page: Path) -> str:
    found = _CLASS.search(page.read_text(encoding="utf-8"))
    return found[1] if found else "fast"


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(text):
        comment = _COMMENT.search(text[: fence.start()])
        directive = {comment[1]: comment[2]} if comment else {}
        line = text.count("\n", 0, fence.start("text")) + 1
        content = textwrap.dedent(fence["text"])
        yield Block(page, line, fence["language"], content, file=directive.get("file"), run=directive.get("run"))


def covering_test(block: Block) -> Path | None:
    """The test that stands in for a block that is not run; None when its comment does not name one."""
    found = _NOT_RUN.fullmatch(block.run or "")
    return ROOT / found["test"].split("::")[0] if found else None


def run_page(page: Path, folder: Path) -> None:
    """Run every block of a page in `folder`, which is the working directory, with the data of Headrace in it too."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with _importable(folder):
        for block in blocks_of(page):
            if block.file:
                (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.file).write_text(block.text, encoding="utf-8")
            elif not block.run and block.language in RUN:
                _run(block, folder, namespace)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a page import the files that it wrote; the next page may have others of the same names."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in sys.modules.keys() - before:
            place = getattr(sys.modules[name], "__file__", None)
            if place and Path(place).is_relative_to(folder):
                del sys.modules[name]


def _run(block: Block, folder: Path, namespace: dict[str, object]) -> None:
    match block.language:
        case "python":
            # The empty lines make a traceback point to the line of the page.
            source = "\n" * (block.line - 1) + block.text
            exec(compile(source, block.page, "exec"), namespace)
        case "sh" | "bash":
            _run_shell(block, folder)
        case "toml":
            tomllib.loads(block.text)
            (folder / "headrace.toml").write_text(block.text, encoding="utf-8")
            load_settings(start=folder)
        case "yaml":
            yaml.safe_load(block.text)
        case _:
            raise AssertionError(f"{block.place}: tests/support/documents.py has no way to run {block.language} yet")


def _run_shell(block: Block, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    answer = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise AssertionError(f"{block.place}: exit code {answer.returncode}\n{answer.stdout}{answer.stderr}")
