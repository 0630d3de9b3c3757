"""Every code block of README.md, docs and apps runs, and none is left out without a reason."""

from pathlib import Path

import pytest

from tests.support.documents import ROOT, RUN, SHOWN, blocks_of, class_of, covering_test, pages, pages_of, run_page

PAGE = """# Made up
<!-- file: greeting.txt -->
```text
hello
```
```python
from pathlib import Path
text = Path("greeting.txt").read_text().strip()
```
- in a list:
  ```sh
  test "$(cat greeting.txt)" = hello && echo seen > seen.txt
  ```
```python
assert (text, Path("seen.txt").read_text()) == ("hello", "seen\\n")
```
```toml
master = "local[2]"
```
<!-- run: no, needs a terminal; covered by tests/fast/project/test_documents.py::test_x -->
```sh
exit 1
```
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    return tmp_path


def made_up(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


@pytest.mark.parametrize("page", pages_of("fast"), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_runs(page, folder):
    run_page(page, folder)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_its_language_and_why_it_is_not_run(page):
    blocks = list(blocks_of(page))
    assert [block.place for block in blocks if block.language not in (*RUN, *SHOWN)] == []
    assert [block.place for block in blocks if block.run and not (covering_test(block) or Path()).is_file()] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_is_run_by_a_class_that_exists(page):
    assert (ROOT / "tests" / class_of(page) / "project" / "test_documents.py").is_file(), "copy the test above to this class"


def test_a_page_is_run_from_top_to_bottom_in_one_folder(folder):
    run_page(made_up(folder, PAGE), folder)
    assert (folder / "seen.txt").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```python\nx = 1\nraise ValueError(x)\n```", "1"),
        ("```sh\necho this is why >&2\nfalse\n```", "this is why"),
        ("```sh\nfalse | true\n```", "exit code 1"),
        ('```toml\nmastr = "local[2]"\n```', "mastr"),
        ("```toml\nmaster = \n```", "at"),
        ("```yaml\na: [\n```", "flow"),
        ("```sql\nSELECT 1\n```", "no way to run sql"),
    ],
)
def test_a_block_that_fails_fails_its_page(folder, text, said):
    with pytest.raises(Exception, match=said):
        run_page(made_up(folder, text), folder)


@pytest.mark.parametrize("number", [1, 2])
def test_a_page_imports_the_file_that_it_wrote_itself(folder, number):
    written = f"<!-- file: of_a_page.py -->\n```python\nnumber = {number}\n```\n"
    page = f"{written}```python\nimport of_a_page\nassert of_a_page.number == {number}\n```\n"
    run_page(made_up(folder, page), folder)


def test_a_traceback_points_to_the_line_of_the_page(folder):
    page = made_up(folder, "# Title\n\n```python\nfirst = 1\nfirst / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page, folder)
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == (page, 5)


@pytest.mark.parametrize("reason", ["no", "no, it is slow", "no, it is slow; covered by tests/fast/test_gone.py"])
def test_a_block_is_not_left_out_without_a_test_in_its_place(folder, reason):
    (block,) = blocks_of(made_up(folder, f"<!-- run: {reason} -->\n```sh\nfalse\n```\n"))
    assert not (covering_test(block) or Path()).is_file()
