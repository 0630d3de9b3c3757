"""`headrace backtest` computes the alerts of an app over history, and judges them by labels and by the running version."""

from pathlib import Path

import pytest

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.gateway import publish
from headrace.cli.demos.fraud.history import history
from tests.support.fraud import NOON

APP = """
import headrace as hr

app = hr.App("large")
payments = app.stream(
    "payments", schema="id int, card string, amount double, at timestamp", key="card", time="at", watermark=hr.bounded("10 seconds")
)
app.sink(payments.where("amount > {limit} and 100 / amount >= 0").select("id, card, amount, at"), hr.log("large_payments"), name="alerts")
app.view("per_card", payments.group("card", ttl=None).agg(payments="count(*)"))
"""


@pytest.fixture
def large(tmp_path, log) -> Path:
    """Payments of 0, 100, 200, ... 900, one a second, and an app that alerts those above a limit."""
    log.create_topic("payments", schema="id int, card string, amount double, at timestamp", key="card", time="at")
    with log.producer() as producer:
        for n in range(10):
            producer.send("payments", {"id": n, "card": f"c{n % 2}", "amount": 100.0 * n, "at": f"2026-01-01T12:00:0{n}Z"})
    file = tmp_path / "app.py"
    file.write_text(APP.format(limit=650))
    return file


def test_all_planted_fraud_of_the_fraud_app_is_found_in_history(headrace, log):
    cards = Cards(2_400, 3)
    made = history(cards, 3, begin=NOON, seconds=120, rate=20, per_case=120)
    publish(log, cards, made)
    (summary,) = headrace("backtest", Path(__file__).parents[4] / "apps" / "fraud" / "app.py", "--labels", "planted", "--json").rows
    assert (summary["precision"], summary["recall"], summary["alerts"]) == (1.0, 1.0, len(made.cases))
    assert summary["records"] == made.payments.num_rows + cards.count
    assert "new" not in summary  # no version has run


def test_precision_and_recall_are_those_of_the_labels(headrace, large, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("card,id\nc1,7\nc1,9\nc0,2\n")
    (summary,) = headrace("backtest", large, "--output", "alerts", "--labels", labels, "--on", "card, id", "--json").rows
    assert (summary["alerts"], summary["labels"], summary["found"]) == (3, 3, 2)
    assert summary["precision"] == summary["recall"] == pytest.approx(2 / 3)


def test_an_alert_without_a_label_of_its_own_counts_once(headrace, large, tmp_path):
    labels = tmp_path / "labels.ndjson"
    labels.write_text('{"card": "c1"}\n')
    (summary,) = headrace("backtest", large, "--labels", labels, "--json").rows
    assert summary["on"] == ["card"]
    assert (summary["found"], summary["precision"], summary["recall"]) == (1, pytest.approx(1 / 3), 1.0)


@pytest.mark.parametrize(
    ("name", "text", "on"),
    [
        ("l.csv", "id,at\n7,2026-01-01T12:00:07Z\n9,2026-01-01 12:00:09\n2,2026-01-01T12:00:02Z\n", ["id", "at"]),
        ("l.csv", "card,note\nc1,x\nc1,y\nc0,z\n", ["card"]),
        ("l.ndjson", '{"id": 7, "amount": 700}\n{"id": 9, "amount": 900}\n{"id": 2, "amount": 200}\n', ["id", "amount"]),
    ],
)
def test_labels_of_a_file_are_read_as_the_columns_of_the_output(headrace, large, tmp_path, name, text, on):
    labels = tmp_path / name
    labels.write_text(text)
    (summary,) = headrace("backtest", large, "--labels", labels, "--json").rows
    assert sorted(summary["on"]) == sorted(on)
    assert (summary["labels"], summary["found"], summary["alerts"]) == (3, 2 if on != ["card"] else 3, 3)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("l.csv", "id\nseven\n", "column 'id' of the labels cannot be read as int, its type in the output"),
        ("l.csv", "", "l.csv' cannot be read: empty CSV"),
        ("l.parquet", "x", "l.parquet' cannot be read: "),
        ("l.ndjson", '{"id": 7', "l.ndjson' cannot be read: "),
        ("l.txt", "id\n7\n", "l.txt' is a file, but not of labels"),
    ],
)
def test_labels_that_cannot_be_read_are_refused(headrace, large, tmp_path, name, text, said):
    labels = tmp_path / name
    labels.write_text(text)
    answer = headrace("backtest", large, "--labels", labels, "--on", "id")
    assert answer.code == 1
    assert said in answer.err


def test_new_and_gone_alerts_are_told_against_the_running_version(headrace, large, log):
    log.create_topic("large_payments", schema="id int, card string, amount double, at timestamp")
    with log.producer() as producer:
        for n in (3, 8):
            producer.send("large_payments", {"id": n, "card": f"c{n % 2}", "amount": 100.0 * n, "at": f"2026-01-01T12:00:0{n}Z"})
    summary, *rows = headrace("backtest", large, "--json").rows
    assert (summary["running"], summary["new"], summary["gone"]) == (2, 2, 1)
    assert [(row["is"], row["id"]) for row in rows] == [("new", 7), ("new", 9), ("gone", 3)]
    summary, *rows = headrace("backtest", large, "--since", "2026-01-01T12:00:08Z", "--json").rows
    assert (summary["records"], summary["running"]) == (2, 1)
    assert [(row["is"], row["id"]) for row in rows] == [("new", 9)]


@pytest.mark.parametrize(
    "columns", ["id int, card string, at timestamp", "id int, card string, amount string, at timestamp, more int", "amount double, id int"]
)
def test_a_version_whose_output_has_other_columns_is_compared_by_those_in_common(headrace, large, log, columns):
    log.create_topic("large_payments", schema=columns)
    row = {"id": 7, "card": "c1", "at": "2026-01-01T12:00:07Z", "amount": "700.0" if "amount string" in columns else 700.0, "more": 1}
    with log.producer() as producer:
        producer.send("large_payments", {name: row[name] for name in log.topic("large_payments").columns.names})
    summary, *rows = headrace("backtest", large, "--json").rows
    assert summary["by"] == [name for name in ("id", "card", "at") if f"{name} " in columns]
    assert [(row["is"], row["id"]) for row in rows] == [("new", 8), ("new", 9)]


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("id string, at timestamp", ("--by", "id"), "the running version has written no column 'id' with the type of the output"),
        ("other int", (), "the running version has written no column with the type of the output"),
    ],
)
def test_a_version_that_cannot_be_compared_is_told(headrace, large, log, columns, options, said):
    log.create_topic("large_payments", schema=columns)
    answer = headrace("backtest", large, *options)
    assert answer.code == 1
    assert said in answer.err


def test_dead_letters_are_counted_and_nothing_is_written(headrace, large, log):
    large.write_text(APP.format(limit=-1))
    (summary,) = headrace("backtest", large, "--json").rows
    assert (summary["alerts"], summary["dead_letters"]) == (9, 1)
    assert {topic.name for topic in log.topics()} == {"payments"}


def test_a_view_is_judged_by_its_live_rows(headrace, large):
    (summary,) = headrace("backtest", large, "--output", "per_card", "--json").rows
    assert summary["alerts"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--output", "other"), "has no output 'other'"),
        (("--labels", "nowhere"), "--labels 'nowhere' is neither a file nor a topic"),
        (("--labels", "payments", "--on", "country"), "--on names 'country', which is not a column of the labels"),
        (("--since", "end"), "--since 'end' is not a time"),
    ],
)
def test_what_cannot_be_judged_is_refused(headrace, large, options, said):
    answer = headrace("backtest", large, *options)
    assert answer.code == 1
    assert said in answer.err
