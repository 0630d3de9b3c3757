"""The reference under docs/reference says what the source says, and has every public name."""

import headrace
from scripts.reference import FOLDER, covered, pages


def test_every_page_of_the_reference_is_as_the_source_says():
    made = pages()
    present = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")}
    assert present.keys() == made.keys()
    old = [name for name, text in made.items() if present[name] != text]
    assert old == [], "docs/reference is not up to date: run `make reference` and commit what it wrote"


def test_every_public_name_is_in_the_reference():
    assert covered() == set(dir(headrace)) - {"__version__"}, "add the name to a page in scripts/reference.py"
