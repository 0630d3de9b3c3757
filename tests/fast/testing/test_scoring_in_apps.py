"""Scores of models in whole apps: an ONNX file, a function, and records that a model fails for."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import HeadraceError, JobError
from headrace.engine.program.compiler import compiled
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

SCHEMA = "card string, amount double, hour int, at timestamp"


def model_file(folder: Path, weights: tuple[float, float] = (0.01, 0.5), classes: int = 1) -> Path:
    """A linear model of two inputs, as an ONNX file; with two classes it gives two columns."""
    from onnx import TensorProto, helper, numpy_helper, save_model

    columns = np.array([*[(0.0, 0.0)] * (classes - 1), weights], np.float32).T
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["inputs", "weights"], ["scores"])], "linear",
        [helper.make_tensor_value_info("inputs", TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, classes])],
        [numpy_helper.from_array(columns, "weights")],
    )  # fmt: skip
    path = folder / "linear.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), str(path))
    return path


def app_of(model: Any, **options: Any) -> Declaration:
    app = Declaration("scored")
    stream = app.stream("payments", SCHEMA, key="card", time="at", watermark=bounded("0s"))
    app.sink(stream.score(model, inputs=["amount", "hour"], **options), LogTopic("out"), name="out")
    return app


def sent(*rows: tuple[float | None, int]) -> list[dict[str, Any]]:
    return [{"card": "c", "amount": amount, "hour": hour, "at": at(second)} for second, (amount, hour) in enumerate(rows)]


@pytest.mark.parametrize("classes", [1, 2])
def test_a_model_in_onnx_scores_each_record_and_one_without_an_input_is_a_dead_letter(tmp_path: Path, classes: int) -> None:
    with TestDriver(app_of(model_file(tmp_path, classes=classes), output="risk")) as driver:
        driver.send("payments", sent((100.0, 2), (None, 3), (200.0, 4)))
        assert [round(row["risk"], 5) for row in driver.rows("out")] == [2.0, 4.0]
        assert [row["reason"] for row in driver.dead_letters("payments")] == ["amount is null, an input of linear.onnx"]
        counts = {row["step"]: row for row in driver.accounting()}["payments.score"]
        assert (counts["in"], counts["out"], counts["dead_letter"]) == (3, 2, 1)


def test_a_function_gets_arrow_tables_and_only_the_records_it_raises_for_are_dead_letters() -> None:
    seen = []

    def doubled(table: pa.Table) -> Any:
        seen.append(table.num_rows)
        if pc.any(pc.equal(table.column("hour"), 13)).as_py():
            raise ValueError("thirteen")
        return pc.multiply(table.column("amount"), 2)

    with TestDriver(app_of(doubled)) as driver:
        driver.send("payments", sent(*((float(hour), hour) for hour in range(10, 18))))
        assert [row["score"] for row in driver.rows("out")] == [20, 22, 24, 28, 30, 32, 34]
        (letter,) = driver.dead_letters("payments")
        assert letter["reason"].startswith("ValueError: thirteen (test_scoring_in_apps.py:")
        assert letter["offset"] == 3
    assert seen[0] == 8


def test_a_function_that_gives_too_few_scores_has_none() -> None:
    with TestDriver(app_of(lambda _table: [1.0, 2.0, 3.0, 4.0])) as driver:
        driver.send("payments", sent((1.0, 1), (2.0, 2)))
        assert driver.rows("out") == []
        assert {row["reason"].split(" (")[0] for row in driver.dead_letters("payments")} == {"ValueError: 4 scores of 2 records"}


ONE = "ValueError: the function returns a value of type {} for all records, not one score for each"


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (lambda table: np.ones((table.num_rows, 2)), "ValueError: several values for a record, not one"),
        (lambda table: [[1.0]] * table.num_rows, "ValueError: several values for a record, not one"),
        (lambda _table: 1.0, ONE.format("float")),
        (lambda table: pc.max(table.column("hour")), ONE.format("Int32Scalar")),
        (lambda table: np.float64(table.num_rows), ONE.format("float64")),
        (lambda table: {"score": [1.0] * table.num_rows}, ONE.format("dict")),
        (lambda _table: [1.0], "ValueError: 1 score of 2 records"),
        (lambda table: [1.0, 2.0] * table.num_rows, "ValueError: 4 scores of 2 records"),
        (
            lambda table: np.array(["2026-01-01"] * table.num_rows, "datetime64[s]").astype(object),
            "ValueError: scores of the type Object, which are no double",
        ),
    ],
)
def test_a_function_that_gives_no_column_of_scores_is_told(scores: Any, reason: str) -> None:
    with TestDriver(app_of(scores)) as driver:
        driver.send("payments", sent((1.0, 1), (2.0, 2)))
        assert driver.rows("out") == []
        assert {row["reason"].split(" (")[0] for row in driver.dead_letters("payments")} == {reason}


def test_a_function_with_one_score_for_a_batch_is_asked_no_more_than_three_times() -> None:
    asked = []

    def mean(table: pa.Table) -> Any:
        asked.append(table.num_rows)
        return [pc.mean(table.column("amount"))]

    with TestDriver(app_of(mean)) as driver:
        driver.send("payments", sent(*((float(number), 1) for number in range(500))))
        assert driver.rows("out") == []
        assert {row["reason"].split(" (")[0] for row in driver.dead_letters("payments")} == {"ValueError: 1 score of 500 records"}
    assert asked == [500, 250, 250]


def test_a_function_that_leaves_records_out_scores_the_others() -> None:
    with TestDriver(app_of(lambda table: table.filter(pc.greater(table.column("hour"), 12)).column("amount"))) as driver:
        driver.send("payments", sent(*((float(hour), hour) for hour in range(10, 18))))
        assert [row["score"] for row in driver.rows("out")] == [13, 14, 15, 16, 17]
        assert [row["offset"] for row in driver.dead_letters("payments")] == [0, 1, 2]


def test_a_score_that_is_no_number_is_told_and_the_function_is_asked_once() -> None:
    asked = []

    def spelled(table: pa.Table) -> Any:
        asked.append(table.num_rows)
        return ["1.5", "high", None]

    with TestDriver(app_of(spelled)) as driver:
        driver.send("payments", sent((1.0, 1), (2.0, 2), (3.0, 3)))
        assert [row["score"] for row in driver.rows("out")] == [1.5, None]
        assert [row["reason"] for row in driver.dead_letters("payments")] == ["the score high is no double"]
    assert asked == [3]


def test_a_function_may_give_a_matrix_of_one_column_as_libraries_do() -> None:
    with TestDriver(app_of(lambda table: np.asarray(table.column("amount")).reshape(-1, 1))) as driver:
        driver.send("payments", sent((1.0, 1), (2.0, 2)))
        assert [row["score"] for row in driver.rows("out")] == [1.0, 2.0]


def added_model(folder: Path, first: str, second: str, kind: Any) -> Path:
    """A model with two inputs of their own: ten times the first, and the second."""
    from onnx import TensorProto, helper, numpy_helper, save_model

    graph = helper.make_graph(
        [
            helper.make_node("Cast", [first], ["left"], to=TensorProto.DOUBLE),
            helper.make_node("Cast", [second], ["right"], to=TensorProto.DOUBLE),
            helper.make_node("Mul", ["left", "ten"], ["tens"]),
            helper.make_node("Add", ["tens", "right"], ["scores"]),
        ],
        "added",
        [helper.make_tensor_value_info(name, kind, [None, 1]) for name in (first, second)],
        [helper.make_tensor_value_info("scores", TensorProto.DOUBLE, [None, 1])],
        [numpy_helper.from_array(np.array([10.0]), "ten")],
    )
    path = folder / "added.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), str(path))
    return path


@pytest.mark.parametrize(
    ("first", "second", "wanted"), [("amount", "hour", [52.0]), ("hour", "amount", [25.0]), ("x", "y", [52.0]), ("Amount", "y", [52.0])]
)
def test_inputs_of_their_own_are_told_by_name_or_else_by_their_order(tmp_path: Path, first: str, second: str, wanted: list[float]) -> None:
    from onnx import TensorProto

    with TestDriver(app_of(added_model(tmp_path, first, second, TensorProto.DOUBLE))) as driver:
        driver.send("payments", sent((5.0, 2)))
        assert [row["score"] for row in driver.rows("out")] == wanted


def test_a_model_over_whole_numbers_gets_them_exactly_and_other_numbers_are_told(tmp_path: Path) -> None:
    from onnx import TensorProto

    app = Declaration("whole")
    stream = app.stream("payments", "card string, amount double, id bigint, at timestamp", key="card", time="at", watermark=bounded("0s"))
    model = added_model(tmp_path, "amount", "id", TensorProto.INT64)
    app.sink(stream.score(model, inputs=["amount", "id"]), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("payments", [{"card": "c", "amount": amount, "id": 7, "at": at(0)} for amount in (2.0, float("nan"))])
        assert [row["score"] for row in driver.rows("out")] == [27.0]
        (letter,) = driver.dead_letters("payments")
        assert letter["reason"] == "amount is NaN, and the input 'amount' of added.onnx is int64"


FITS = [
    ("INT8", [(127, 127.0), (-128, -128.0)], [(128, "128.0"), (1.5, "1.5"), (float("-inf"), "-inf")]),
    ("UINT8", [(255, 255.0)], [(-1, "-1.0"), (256, "256.0")]),
    ("UINT64", [(2**53, 2.0**53)], [(-1, "-1.0"), (2.0**64, "1.8446744073709552e+19")]),
    ("INT64", [(-(2**53), -(2.0**53))], [(2.0**63, "9.223372036854776e+18")]),
    ("BOOL", [(1, 1.0), (0, 0.0)], [(2, "2.0")]),
    ("FLOAT16", [(1.5, 1.5), (65519, 65504.0), (float("inf"), float("inf"))], [(65520, "65520.0"), (-1e300, "-1e+300")]),
    ("FLOAT", [(0.5, 0.5)], [(1e39, "1e+39")]),
]


@pytest.mark.parametrize(("kind", "fit", "unfit"), FITS)
@pytest.mark.parametrize("own", [True, False])
def test_a_number_is_given_as_the_type_of_the_input_or_told(tmp_path: Path, kind: str, fit: Any, unfit: Any, own: bool) -> None:
    from onnx import TensorProto, helper, save_model

    inputs = [helper.make_tensor_value_info("x", getattr(TensorProto, kind), [None] if own else [None, 1])]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.DOUBLE, None)]
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["scores"], to=TensorProto.DOUBLE)], "typed", inputs, outputs)
    path = tmp_path / "typed.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), str(path))
    app = Declaration("typed")
    stream = app.stream("payments", SCHEMA, key="card", time="at", watermark=bounded("0s"))
    app.sink(stream.score(path, inputs="amount"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("payments", sent(*((float(value), 1) for value, _ in [*fit, *unfit])))
        assert [row["score"] for row in driver.rows("out")] == [wanted for _, wanted in fit]
        said = [f"amount is {text}, and the input 'x' of typed.onnx is {kind.lower()}" for _, text in unfit]
        assert [row["reason"] for row in driver.dead_letters("payments")] == said


@pytest.mark.parametrize("kind", ["bigint", "decimal(12, 2)", "float"])
def test_numbers_of_every_type_are_given_to_a_model_over_small_whole_numbers(tmp_path: Path, kind: str) -> None:
    from onnx import TensorProto

    app = Declaration("small")
    stream = app.stream("payments", f"card string, a {kind}, b {kind}, at timestamp", key="card", time="at", watermark=bounded("0s"))
    app.sink(stream.score(added_model(tmp_path, "a", "b", TensorProto.INT8), inputs=["a", "b"]), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("payments", [{"card": "c", "a": a, "b": 2, "at": at(0)} for a in (5, 128, None, -128)])
        assert [row["score"] for row in driver.rows("out")] == [52.0, -1278.0]
        reasons = [row["reason"] for row in driver.dead_letters("payments")]
        assert [reason.partition(" is ")[2].split(",")[0].split(".")[0] for reason in reasons] == ["128", "null"]


def test_a_model_with_other_inputs_is_told_by_their_numbers(tmp_path: Path) -> None:
    from onnx import TensorProto

    for model, said in [
        (model_file(tmp_path), "ValueError: the model takes 2 values a record, not 3 (amount, hour, twice)"),
        (
            added_model(tmp_path, "x", "y", TensorProto.FLOAT),
            "ValueError: the model has 2 inputs (x, y), not 3 (amount, hour, twice)",
        ),
        (model_file(tmp_path, classes=3), "ValueError: the model gives 3 values for a record, not one"),
    ]:
        app = Declaration("other")
        stream = app.stream("payments", SCHEMA, key="card", time="at", watermark=bounded("0s")).with_columns(twice="hour * 2")
        inputs = ["amount", "hour"] if "gives" in said else ["amount", "hour", "twice"]
        app.sink(stream.score(model, inputs=inputs), LogTopic("out"), name="out")
        with TestDriver(app) as driver:
            driver.send("payments", sent((1.0, 1)))
            assert [row["reason"] for row in driver.dead_letters("payments")] == [said]


def test_a_file_that_is_no_model_stops_the_job_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "risk.onnx"
    path.write_bytes(b"no model")
    with TestDriver(app_of(path)) as driver, pytest.raises(JobError, match=r"model risk\.onnx cannot be loaded: InvalidProtobuf"):
        driver.send("payments", sent((1.0, 1)))


def test_a_model_travels_to_workers_and_is_refused_where_its_file_has_changed(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    app = app_of(path)
    assert pickle.loads(pickle.dumps(compiled(app.plan(), 2)))
    path.write_bytes(b"another")
    with TestDriver(app) as driver, pytest.raises(JobError, match="has changed since"):
        driver.send("payments", sent((1.0, 1)))


def test_what_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    for model, options, said in [
        ("nowhere.onnx", {}, "there is no ONNX file"),
        (3, {}, "is not a function"),
        (model_file(tmp_path), {"inputs": ["card"]}, "input 'card' of linear.onnx is string"),
        (model_file(tmp_path), {"inputs": []}, "has no input"),
        (model_file(tmp_path), {"output": "card"}, "two columns 'card'"),
    ]:
        app = Declaration("refused")
        stream = app.stream("payments", SCHEMA, key="card", time="at", watermark=bounded("0s"))
        with pytest.raises(HeadraceError) as refused:
            stream.score(model, **{"inputs": ["amount"], **options})
        assert said in str(refused.value)


def test_results_that_change_are_not_scored() -> None:
    app = Declaration("changing")
    stream = app.stream("payments", SCHEMA, key="card", time="at", watermark=bounded("0s"))
    totals = stream.window(tumbling("1 minute"), by="card").agg(n="count(*)").emit(early="1 second")
    app.sink(totals.score(lambda table: table.column("n"), inputs="n"), LogTopic("out"), name="out")
    with pytest.raises(HeadraceError, match="scores of"):
        app.plan()
