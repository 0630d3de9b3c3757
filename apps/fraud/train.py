"""Training of the model that the app scores payments with: a logistic regression over generated history, written as ONNX.

usage: python apps/fraud/train.py [FILE]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import onnx
import polars as pl
from onnx import TensorProto, helper, numpy_helper

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.history import history
from headrace.cli.demos.fraud.places import RISKS
from headrace.cli.demos.fraud.rules import FEATURES, MODEL, SCORE
from headrace.operators.expressions.places import great_circle_km

SEED, CARDS, SECONDS, RATE = 2026, 6_000, 3_600, 50
# A payment in two thousand is fraud; this is the weight of each.
_RARE = 50
_STEPS, _PENALTY = 100, 1e-7


def examples(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The features of every payment of an hour, and which of them only a model can find."""
    cards = Cards(CARDS, seed)
    made = history(cards, seed, begin=datetime(2026, 1, 1, tzinfo=UTC), seconds=SECONDS, rate=RATE)
    rows = pl.DataFrame(made.payments).join(pl.DataFrame(cards.profiles()), on="card")
    features = np.column_stack(
        [
            rows["amount"] / rows["typical_amount"],
            great_circle_km(*(rows[name].to_numpy() for name in ("lat", "lon", "home_lat", "home_lon"))),
            rows["category"].replace_strict(RISKS, return_dtype=pl.Float64),
        ]
    )
    planted = {payment for case in made.cases if case.rule == SCORE for payment in case.payments}
    return features, rows["id"].is_in(planted).to_numpy().astype(float)


def trained(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and bias over the logarithms of the features: Newton's method, with a small penalty."""
    inputs = np.log1p(features)
    mean, deviation = inputs.mean(0), inputs.std(0)
    inputs = np.column_stack([(inputs - mean) / deviation, np.ones(len(inputs))])
    shares = np.where(labels > 0, _RARE, 1) / len(labels)
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (shares * (chances - labels)) + _PENALTY * weights
        curve = (inputs * (shares * chances * (1 - chances))[:, None]).T @ inputs + _PENALTY * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return weights[:-1] / deviation, float(weights[-1] - (weights[:-1] * mean / deviation).sum())


def written(weights: np.ndarray, bias: float) -> onnx.ModelProto:
    """The model as ONNX: log(1 + x), a product, and the logistic function."""
    values = {"one": np.array([1.0]), "weights": weights[:, None], "bias": np.array([bias])}
    nodes = [
        helper.make_node("Add", ["features", "one"], ["above"]),
        helper.make_node("Log", ["above"], ["logarithms"]),
        helper.make_node("MatMul", ["logarithms", "weights"], ["weighed"]),
        helper.make_node("Add", ["weighed", "bias"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["score"]),
    ]
    graph = helper.make_graph(
        nodes, "fraud", [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, len(FEATURES)])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, 1])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in values.items()],
    )  # fmt: skip
    made = helper.make_model(graph, producer_name="headrace", opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def main(file: Path) -> None:
    weights, bias = trained(*examples(SEED))
    file.write_bytes(written(weights, bias).SerializeToString())
    features, labels = examples(SEED + 1)
    found = 1 / (1 + np.exp(-(np.log1p(features) @ weights + bias))) > 0.9
    wrong, missed = int((found & (labels == 0)).sum()), int((~found & (labels == 1)).sum())
    print(f"{file.name}: weights {np.round(weights, 2).tolist()}, bias {bias:.2f}")
    print(f"another hour of {len(labels):,} payments: {int(labels.sum())} planted, {missed} missed, {wrong} found in vain")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else MODEL)
