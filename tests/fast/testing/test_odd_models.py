"""Models whose inputs and outputs have unusual shapes and types: a score, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.operators.onnx_models import OnnxSession
from headrace.testing.driver import TestDriver
from tests.support.streams import at

DOUBLE, OPSET = TensorProto.DOUBLE, [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]


def saved(folder: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], numbers: dict[str, Any] | None = None) -> Path:
    constants = [numpy_helper.from_array(np.array(value), name) for name, value in (numbers or {}).items()]
    graph = helper.make_graph(nodes, "odd", inputs, outputs, constants)
    save_model(helper.make_model(graph, opset_imports=OPSET, ir_version=9), str(folder / "odd.onnx"))
    return folder / "odd.onnx"


def tensor(name: str, shape: list[Any] | None, kind: int = DOUBLE) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def answers(model: Path, values: list[Any], inputs: Any = "a", **options: Any) -> tuple[list[Any], list[str]]:
    """The scores of records with `a`, and 10 as `b`; and the reasons of dead letters."""
    app = Declaration("odd")
    stream = app.stream("records", "id int, a double, b double, at timestamp", key="id", time="at", watermark=bounded("0s"))
    app.sink(stream.score(model, inputs=inputs, **options), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("records", [{"id": number, "a": value, "b": 10.0, "at": at(0)} for number, value in enumerate(values)])
        return [row["score"] for row in driver.rows("out")], [row["reason"] for row in driver.dead_letters("records")]


def test_an_input_without_columns_takes_one_value_of_each_record(tmp_path: Path) -> None:
    model = saved(tmp_path, [helper.make_node("Identity", ["x"], ["y"])], [tensor("x", ["n"])], [tensor("y", ["n"])])
    assert answers(model, [1.0, 2.0, 3.0]) == ([1.0, 2.0, 3.0], [])
    scores, reasons = answers(model, [1.0, 2.0, 3.0], ["a", "b"])
    assert scores == []
    assert {reason.split(" (")[0] for reason in reasons} == {"ValueError: the model takes one value a record, not 2"}


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_a_model_for_batches_of_one_size_scores_any_number_of_records(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = saved(tmp_path, [helper.make_node("Identity", ["x"], ["y"])], [tensor("x", [size, 1])], [tensor("y", [size, 1])])
    asked = list[int]()
    scored = OnnxSession._scored

    def noted(session: OnnxSession, inputs: pl.DataFrame) -> pl.Series:
        asked.append(inputs.height)
        return scored(session, inputs)

    monkeypatch.setattr(OnnxSession, "_scored", noted)
    assert answers(model, [1.0, 2.0, 3.0, 4.0]) == ([1.0, 2.0, 3.0, 4.0], [])
    assert asked == [size] * -(-4 // size)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT8, TensorProto.UINT16])
def test_scores_of_every_type_are_numbers(tmp_path: Path, kind: int) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=kind)]
    model = saved(tmp_path, nodes, [tensor("x", ["n", 1])], [tensor("y", ["n", 1], kind)])
    assert answers(model, [1.0, 2.0, 3.0]) == ([1.0, 2.0, 3.0], [])


def test_scores_that_are_true_or_false_are_one_or_zero(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BOOL)]
    model = saved(tmp_path, nodes, [tensor("x", ["n", 1])], [tensor("y", ["n", 1], TensorProto.BOOL)])
    assert answers(model, [1.0, 0.0]) == ([1.0, 0.0], [])


def test_scores_that_are_text_are_numbers_if_they_are_spelled_so(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)]
    model = saved(tmp_path, nodes, [tensor("x", ["n", 1])], [tensor("y", ["n", 1], TensorProto.STRING)])
    assert answers(model, [1.5, 2.0]) == ([1.5, 2.0], [])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_classifier_gives_the_probability_of_the_second_of_two_classes(tmp_path: Path, classes: int, zipped: bool) -> None:
    """As scikit-learn's classifiers are exported: labels first, then probabilities, as a matrix or as a map for each record."""
    weights = np.zeros((1, classes), np.float32)
    weights[0, -1] = 1.0
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT), helper.make_node("MatMul", ["f", "weights"], ["p"]),
        helper.make_node("ArgMax", ["p"], ["label"], axis=1, keepdims=0),
    ]  # fmt: skip
    outputs = [tensor("label", ["n"], TensorProto.INT64)]
    if zipped:
        nodes.append(helper.make_node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=list(range(classes))))
        kind = helper.make_sequence_type_proto(
            helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        )
        outputs.append(helper.make_value_info("maps", kind))
    else:
        outputs.append(tensor("p", ["n", classes], TensorProto.FLOAT))
    model = saved(tmp_path, nodes, [tensor("x", ["n", 1])], outputs, {"weights": weights})
    scores, reasons = answers(model, [0.25, 0.5, 0.75])
    if classes == 2:
        assert (scores, reasons) == ([0.25, 0.5, 0.75], [])
    else:
        assert scores == []
        assert {reason.split(" (")[0] for reason in reasons} == {"ValueError: the model gives 3 values for a record, not one"}


def test_a_model_whose_scores_are_a_list_of_tensors_is_told(tmp_path: Path) -> None:
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["y"])]
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(DOUBLE, None))
    model = saved(tmp_path, nodes, [tensor("x", ["n", 1])], [helper.make_value_info("y", kind)])
    scores, reasons = answers(model, [1.0, 2.0])
    assert scores == []
    assert {reason.split(" (")[0] for reason in reasons} == {"ValueError: the model gives a list of tensors, not one score for each record"}


@pytest.mark.parametrize(
    ("node", "shape", "said"),
    [
        (helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0), [], "the model gives one value for all records"),
        (helper.make_node("Transpose", ["x"], ["y"]), [1, "n"], "the model gives 3 values for a record, not one"),
        (helper.make_node("Reshape", ["x", "third"], ["y"]), ["n", 1, 1], "the model gives 1 x 1 values for a record, not one"),
    ],
)
def test_a_model_whose_scores_are_not_one_for_each_record_is_told(tmp_path: Path, node: Any, shape: list[Any], said: str) -> None:
    numbers = {"third": np.array([-1, 1, 1], np.int64)} if node.op_type == "Reshape" else {}
    model = saved(tmp_path, [node], [tensor("x", ["n", 1])], [tensor("y", shape)], numbers)
    scores, reasons = answers(model, [1.0, 2.0, 3.0])
    assert scores == []
    assert {reason.split(" (")[0] for reason in reasons} == {f"ValueError: {said}"}
