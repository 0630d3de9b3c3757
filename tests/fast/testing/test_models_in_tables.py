"""A new model is a row of a table: it takes over at the epoch in which it arrives, and a replay uses the model of then."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.api.declaration import Declaration
from headrace.core.errors import HeadraceError
from headrace.log.target import LogTopic
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver

RECORDS = "id int, key string, x double"


def times(factor: float) -> bytes:
    """A model whose score is its input times a number."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "factor"], ["score"])], "times",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [None, 1])],
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, [None, 1])],
        [numpy_helper.from_array(np.array([float(factor)]), "factor")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def declared(**options: Any) -> Declaration:
    app = Declaration("scores")
    models = app.stream("models", schema="version int, model binary", key="version").to_table("version")
    records = app.stream("records", schema=RECORDS, key="key")
    app.sink(records.score(models, inputs="x", version="made_by", **options), LogTopic("scored"), name="scored")
    return app


def row(number: int, x: float | None = 1.0) -> dict[str, Any]:
    return {"id": number, "key": f"k{number}", "x": x}


def scored(driver: TestDriver) -> dict[int, tuple[float, int]]:
    return {row["id"]: (row["score"], row["made_by"]) for row in driver.rows("scored")}


@pytest.mark.parametrize("shards", [1, 3])
def test_a_new_model_takes_over_at_the_epoch_in_which_it_arrives(shards: int) -> None:
    with TestDriver(declared(), shards=shards) as driver:
        driver.send("models", [{"version": 1, "model": times(2)}])
        driver.send("records", [row(n) for n in range(8)])
        driver.restart()
        driver.send("models", [{"version": 2, "model": times(3)}])
        driver.send("records", [row(n) for n in range(8, 16)])
        driver.rescale(2)
        driver.send("records", [row(16)])
        assert scored(driver) == {n: (2.0, 1) if n < 8 else (3.0, 2) for n in range(17)}


def test_an_older_version_that_comes_later_does_not_take_over() -> None:
    with TestDriver(declared()) as driver:
        driver.send("models", [{"version": 7, "model": times(7)}])
        driver.send("models", [{"version": 6, "model": times(6)}])
        driver.send("records", [row(1)])
        assert scored(driver) == {1: (7.0, 7)}


def test_before_the_first_model_records_are_dead_letters() -> None:
    with TestDriver(declared()) as driver:
        driver.send("records", [row(1)])
        driver.send("models", [{"version": 1, "model": times(2)}])
        driver.send("records", [row(2), row(3, None)])
        assert [(letter["reason"], letter["offset"]) for letter in driver.dead_letters("records")] == [
            ("there is no model yet", 0),
            ("x is null, an input of model version 1", 2),
        ]
        assert scored(driver) == {2: (2.0, 1)}


def test_a_model_that_cannot_be_loaded_makes_dead_letters_until_the_next_one() -> None:
    with TestDriver(declared()) as driver:
        driver.send("models", [{"version": 1, "model": b"no model"}])
        driver.send("records", [row(1)])
        driver.send("models", [{"version": 2, "model": times(2)}])
        driver.send("records", [row(2)])
        (letter,) = driver.dead_letters("records")
        assert letter["reason"].startswith("model version 1 cannot be loaded: ")
        assert scored(driver) == {2: (2.0, 2)}


def test_a_table_without_versions_or_models_is_refused_where_it_is_written() -> None:
    app = Declaration("refused")
    models = app.stream("models", schema="name string, model string", key="name").to_table("name")
    with pytest.raises(HeadraceError, match="needs the columns version and model, and has model string") as refused:
        app.stream("records", schema=RECORDS).score(models, inputs="x")
    assert __file__ in str(refused.value)


def test_a_version_is_refused_for_a_model_that_is_no_table() -> None:
    with pytest.raises(HeadraceError, match="only the rows of a table have versions"):
        Declaration("refused").stream("records", schema=RECORDS).score(lambda table: table["x"], inputs="x", version="v")


def test_explain_says_that_every_shard_has_all_models() -> None:
    assert "the table of models, on every shard" in str(explained(declared().plan()))
