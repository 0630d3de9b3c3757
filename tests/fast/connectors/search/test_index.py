"""Rows in an index of a directory, looked up by their words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import headrace as hr
from headrace.connectors.output import Changes, Writer
from headrace.connectors.search.documents import names
from headrace.core.columns.schema import schema

COLUMNS = schema("id bigint, name string, kind string, price double, sold boolean, made_at timestamp, tags array<string>")
SHOES: dict[str, Any] = {
    "id": 1, "name": "Red running shoes", "kind": "Shoe Box", "price": 59.5, "sold": True,
    "made_at": datetime(2026, 1, 2, tzinfo=UTC), "tags": ["a", "b"],
}  # fmt: skip
HATS: dict[str, Any] = {**SHOES, "id": 2, "name": "Blue hats", "kind": "Hat", "price": float("nan"), "sold": False, "made_at": None}


def written(target: Any, rows: list[dict[str, Any]], epoch: int = 1) -> None:
    output = target.output(COLUMNS, ("id",))
    output.prepare(1)
    frame = pl.DataFrame(rows, schema_overrides={"made_at": pl.Datetime("us", "UTC")})
    output.write(Writer("job", "sink"), epoch, Changes(frame), None)
    output.publish("job", "sink", epoch)


def found(target: Any, text: str) -> list[int]:
    return sorted(row["id"] for row in target.find(text))


def test_rows_are_found_by_words_and_by_what_stands_in_other_columns(tmp_path: Path) -> None:
    target = hr.search(tmp_path / "index", key="id")
    written(target, [SHOES, HATS])
    assert found(target, "shoes") == found(target, "RED") == found(target, 'name:"running shoes"') == [1]
    assert found(target, "price:[10 TO 60]") == found(target, "sold:true") == [1]
    assert found(target, "made_at:[2026-01-01T00:00:00Z TO 2026-01-03T00:00:00Z]") == [1]
    assert found(target, "hats OR shoes") == found(target, "*") == [1, 2]
    assert target.find("*", limit=1) != []
    (row,) = target.find("shoes")
    assert row == {**SHOES, "made_at": "2026-01-02T00:00:00Z"}


def test_words_are_looked_for_only_in_the_fields_that_are_named(tmp_path: Path) -> None:
    target = hr.search(tmp_path / "index", key="id", fields="name")
    written(target, [SHOES, HATS])
    assert found(target, "hats") == [2]
    assert found(target, "hat") == []
    assert found(target, 'kind:"Shoe Box"') == [1]


def test_the_latest_row_of_a_key_is_found_after_many_epochs(tmp_path: Path) -> None:
    target = hr.search(tmp_path / "index", key="id")
    for epoch in range(1, 12):
        written(target, [{**SHOES, "name": f"name{epoch}"}], epoch)
    assert found(target, "name11") == [1]
    assert found(target, "name3") == []
    assert len(target.find("*")) == 1


def test_what_cannot_be_looked_for_is_told(tmp_path: Path) -> None:
    target = hr.search(tmp_path / "index")
    with pytest.raises(hr.ConnectorError, match="cannot be read"):
        target.find("shoes")
    written(target, [SHOES])
    with pytest.raises(hr.SettingsError, match="is not a query"):
        target.find("nothing:here")


def test_an_index_of_other_columns_is_refused_before_a_job_starts(tmp_path: Path) -> None:
    hr.search(tmp_path).output(COLUMNS, ("id",)).prepare(1)
    with pytest.raises(hr.SchemaError, match="other columns"):
        hr.search(tmp_path).output(schema("id bigint, title string"), ("id",)).prepare(1)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (lambda: hr.search("http://localhost:9200"), "many indexes"),
        (lambda: hr.search("http://localhost:9200", index="Shop/Items"), "not a name of an index"),
        (lambda: hr.search("http://ada:s3same@localhost:9200", index="shop"), "contains a password"),
        (lambda: hr.search("place", index="shop"), "has no name"),
        (lambda: hr.search("place", fields="price").check(COLUMNS, ("id",)), "'price' is double"),
        (lambda: hr.search("place", fields="title").check(COLUMNS, ("id",)), "no column 'title'"),
        (lambda: hr.search("place").check(schema("_headrace_row string"), ()), "names of the index itself"),
    ],
)
def test_what_cannot_be_an_index_is_refused_when_it_is_declared(target: Any, said: str) -> None:
    with pytest.raises(hr.HeadraceError, match=said):
        target()


def test_headers_that_hold_a_secret_show_nowhere() -> None:
    target = hr.search("https://search.example.org", index="shop", headers={"Authorization": "Basic s3same"})
    assert "s3same" not in repr(target) + str(target)


def test_documents_are_told_apart_by_their_key_however_long_it_is() -> None:
    long = ["k" * 600 + "1", "k" * 600 + "2"]
    found = names(pl.DataFrame({"user": ["null", None, *long]}), ("user",))
    assert len(set(found)) == 4
    assert max(len(name.encode()) for name in found) <= 512


def test_files_that_a_crash_left_in_the_index_do_not_stop_the_next_commit(tmp_path: Path) -> None:
    directory = tmp_path / "index"
    target = hr.search(directory, key="id")
    written(target, [SHOES, HATS])
    (segment,) = json.loads((directory / "meta.json").read_text())["segments"]
    left = [f"{segment['segment_id'].replace('-', '')}.{number}.del" for number in range(40)]
    managed = json.loads((directory / ".managed.json").read_text())
    (directory / ".managed.json").write_text(json.dumps([*managed, *left]))
    for name in left:
        (directory / name).touch()
    written(target, [{**SHOES, "name": "green"}], 2)
    assert found(target, "green") == [1]
    assert found(target, "*") == [1, 2]
