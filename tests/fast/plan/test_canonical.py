"""What tells two versions of the user's code apart: its functions, classes, modules, and the values that they refer to."""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.plan.evolution.canonical import digest

Modules = dict[str, str]


@pytest.fixture
def read() -> Iterator[Callable[..., str]]:
    """The digest of the function `f` in a text, as if it were a file of the user's; further modules by name."""
    before = dict(sys.modules)

    def of(text: str, others: Modules | None = None) -> str:
        for name, content in {**(others or {}), "users_app": text}.items():
            module = types.ModuleType(name)
            sys.modules[name] = module
            owner, _, last = name.rpartition(".")
            if owner:
                setattr(sys.modules[owner], last, module)
            exec(compile(textwrap.dedent(content), f"{name}.py", "exec"), module.__dict__)
        return digest(sys.modules["users_app"].f)

    yield of
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


CHANGED = {
    "a property": "class C:\n  @property\n  def p(self): return {}\nK = C()\ndef f(r): return K.p",
    "a cached property": "import functools\nclass C:\n  @functools.cached_property\n  def p(self): return {}\ndef f(r): return C().p",
    "an operator of a class": "class C:\n  def __getitem__(self, i): return {}\ndef f(r): return C()[r]",
    "a class method": "class C:\n  @classmethod\n  def m(cls): return {}\ndef f(r): return C.m()",
    "a method made of a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass C:\n  x: int\n  def __post_init__(self): self.y = {}\ndef f(r): return C(r)"
    ),
    "slots of an object": "class C:\n  __slots__ = ('x',)\nK = C()\nK.x = {}\ndef f(r): return K.x",
    "the value of an enum's member": "import enum\nclass E(enum.Enum):\n  A = {}\nK = E.A\ndef f(r): return K.value",
    "a metaclass": "class M(type):\n  k = {}\nclass C(metaclass=M): pass\ndef f(r): return C.k",
    "a decorator's argument": (
        "import functools\n"
        "def times(k):\n  def wrap(g):\n    @functools.wraps(g)\n    def inner(r): return g(r) * k\n    return inner\n  return wrap\n"
        "@times({})\ndef f(r): return r"
    ),
    "a cached function": "import functools\n@functools.lru_cache\ndef f(r): return {}",
    "a function for one type": (
        "import functools\n@functools.singledispatch\ndef g(r): return 0\n@g.register\ndef _(r: int): return {}\ndef f(r): return g(r)"
    ),
    "the end of a long regular expression": "import re\nK = re.compile('a' * 300 + '{}')\ndef f(r): return K.match(r)",
    "a method of a regular expression": "import re\nmatch = re.compile('{}').match\ndef f(r): return match(r)",
    "a method of a dictionary": "price = {{'a': {}}}.get\ndef f(r): return price(r)",
    "a getter": "import operator\nkey = operator.itemgetter({})\ndef f(r): return sorted(r, key=key)",
    "a range": "K = range({})\ndef f(r): return list(K)",
    "a path": "from pathlib import Path\nK = Path('{}')\ndef f(r): return K",
    "a deque": "from collections import deque\nK = deque([{}])\ndef f(r): return list(K)",
    "a fraction": "from fractions import Fraction\nK = Fraction(1, {})\ndef f(r): return K",
    "a number of numpy": "import numpy as np\nK = np.timedelta64({}, 's')\ndef f(r): return K",
    "a frame": "import polars as pl\nK = pl.DataFrame({{'a': [{}]}})\ndef f(r): return K",
    "an expression": "import polars as pl\nK = pl.col('a') + {}\ndef f(r): return K",
    "an Arrow table": "import pyarrow as pa\nK = pa.table({{'a': [{}]}})\ndef f(r): return K",
    "attributes of a dictionary of the user's": "class D(dict): pass\nK = D()\nK.x = {}\ndef f(r): return K.x",
    "methods of a number of the user's": "class D(int):\n  def m(self): return {}\nK = D(3)\ndef f(r): return K.m()",
}  # fmt: skip


@pytest.mark.parametrize("said", CHANGED)
def test_a_function_is_told_apart_by_all_that_it_refers_to(said: str, read: Callable[..., str]) -> None:
    text = CHANGED[said]
    assert read(text.format(2)) == read(text.format(2)) != read(text.format(3))


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("import helpers\ndef f(r): return helpers.K", "helpers"),
        ("from helpers import g\ndef f(r): return g(r)", "helpers"),
        ("def f(r):\n  import helpers\n  return helpers.K", "helpers"),
        ("def f(r):\n  from helpers import g\n  return g(r)", "helpers"),
        ("import tools.inner\ndef f(r): return tools.inner.g(r)", "tools.inner"),
        ("def f(r):\n  import tools.inner as inner\n  return inner.K", "tools.inner"),
    ],
)
def test_a_function_is_told_apart_by_the_modules_of_the_user_that_it_imports(text: str, module: str, read: Callable[..., str]) -> None:
    one, other = (read(text, {module.partition(".")[0]: "", module: f"K = {number}\ndef g(r): return K"}) for number in (1, 2))
    assert one != other
    assert one == read(text, {module.partition(".")[0]: "", module: "K = 1\ndef g(r): return K\ndef unused(): pass"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # The instructions are the same, and the ranges in which exceptions are handled are not.
        (
            "def f(r):\n  try:\n    a = g(r)\n  except ValueError:\n    return 1\n  else:\n    return h(a)",
            "def f(r):\n  try:\n    a = g(r)\n    return h(a)\n  except ValueError:\n    return 1",
        ),
        ("K = {'a': 1, 'b': 2}\ndef f(r): return next(iter(K))", "K = {'b': 2, 'a': 1}\ndef f(r): return next(iter(K))"),
        ("K = [1]\ndef f(r): return r == K", "K = (1,)\ndef f(r): return r == K"),
        ("def f(r, *k): return k", "def f(r, **k): return k"),
    ],
)
def test_code_that_looks_alike_and_does_something_else_is_told_apart(one: str, other: str, read: Callable[..., str]) -> None:
    assert read(one) != read(other)


@pytest.mark.parametrize(
    "other",
    [
        'def f(r):\n  """A docstring."""\n  # and a comment\n  kept = r + K\n  return kept',
        "def f(r: int) -> int:\n\n  made = (r + K)\n  return made",
    ],
)
def test_words_about_code_and_names_of_variables_are_no_change(other: str, read: Callable[..., str]) -> None:
    assert read("K = 1\ndef f(r):\n  x = r + K\n  return x") == read(f"K = 1\n{other}")


def test_a_relative_import_in_a_function_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "users_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rules.py").write_text("def f(r):\n  from .limits import K\n  return r > K\n")
    monkeypatch.syspath_prepend(tmp_path)

    def declared(limit: int) -> str:
        (package / "limits.py").write_text(f"K = {limit}\n# {'x' * limit}")
        for name in [name for name in sys.modules if name.startswith("users_package")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return digest(importlib.import_module("users_package.rules").f)

    assert declared(1) == declared(1) != declared(20)


def test_a_package_that_a_function_imports_is_not_imported_for_that(read: Callable[..., str]) -> None:
    text = "def f(r):\n  from pyarrow.acero import Declaration\n  import wheel_without_a_name.part\n  return Declaration"
    acero = sys.modules.pop("pyarrow.acero", None)
    try:
        assert read(text) == read(text)
        assert "pyarrow.acero" not in sys.modules
    finally:
        sys.modules.update({} if acero is None else {"pyarrow.acero": acero})


def test_what_differs_from_run_to_run_is_told_by_its_class(tmp_path: Path) -> None:
    (tmp_path / "users_app.py").write_text(
        "import os, queue, random, threading\nimport numpy as np\nfrom os import environ\n"
        "class Client:\n  def __init__(self): self.pid = os.getpid(); self.lock = threading.Lock()\n"
        "def a(r): pass\ndef b(r): pass\n"
        "K = [random.Random(), np.random.default_rng(), threading.Lock(), queue.Queue(), environ, {a, b}, {'x', 'y', 'z'}]\n"
        "def f(r): return K\n"
    )
    code = "import users_app; from headrace.plan.evolution.canonical import digest; print(digest(users_app.f))"
    environment = {"PYTHONPATH": ":".join([str(tmp_path), *sys.path])}
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**environment, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


def test_hundreds_of_functions_that_call_each_other_are_each_read_once(read: Callable[..., str]) -> None:
    chain = [f"def g{number}(r): return g{number - 1}(r) + g{number - 2}(r)" for number in range(2, 400)]

    def declared(last: int) -> str:
        return "\n".join([f"def g0(r): return {last}", "def g1(r): return g399(r)", *chain, "def f(r): return g399(r)"])

    assert read(declared(1)) == read(declared(1)) != read(declared(2))


def test_classes_that_refer_to_each_other_have_a_text() -> None:
    class One:
        def other(self) -> Any:
            return Two

    class Two(One):
        def other(self) -> Any:
            return One()

    found = [digest(kind) for kind in itertools.islice(itertools.cycle([One, Two]), 4)]
    assert found[:2] == found[2:]
    assert found[0] != found[1]
