"""A notebook, executed: streams, tables, views and reports show themselves, and a live table follows its view."""

import nbformat
from nbclient import NotebookClient

BEGIN = """
import threading
import headrace as hr
from headrace.testing.written import WrittenView

totals = WrittenView(__import__("pathlib").Path("home"), "url string, views bigint", ["url"])
totals.epoch([{"url": "/a", "views": 1}])
app = hr.App("notebook", home="home")
facts = app.stream("facts", schema="url string, views bigint", key="url")
with app.log.producer() as producer:
    producer.send("facts", {"url": "/<b>", "views": 7})
latest = facts.where("views > 0").to_table("url")
app.view("latest", latest)
app.view("totals", latest)
"""
SHOW = 'table = app.show("totals"); table'
CHANGE = """
seen = threading.Event()
table.observe(lambda change: seen.set() if ["/b", 1234] in change["new"] else None, "rows")
totals.epoch([{"url": "/b", "views": 1234}], removed=[{"url": "/a", "views": 1}])
assert seen.wait(60), table.rows
table.rows
"""
REPORT = """
from headrace.jobs.facts.report import Report
ends = dict.fromkeys(("out", "late", "duplicate", "filtered", "dead_letter", "partly_late"), 0)
Report("notebook", 3, None, 1.0, [{"step": "facts", "in": 8, **ends, "out": 8, "late_reason": None, "dead_letter_reason": None}])
"""


def executed(folder, *cells):
    """A notebook after all its cells have run, each with its outputs."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()
    return notebook


def data_of(cell):
    return next(output["data"] for output in cell["outputs"] if "data" in output)


def test_a_notebook_shows_streams_tables_and_reports_and_a_live_table_follows_its_view(tmp_path):
    notebook = executed(tmp_path, BEGIN, "facts", "latest", "app", SHOW, CHANGE, REPORT)
    _, stream, table, app, live, changed, report = notebook["cells"]
    shown = data_of(stream)["text/html"]
    assert "<svg" in shown
    assert "bigint" in shown
    # What is in the rows is text, whatever it looks like.
    assert "/&lt;b&gt;" in shown
    assert "<b>/" not in shown
    assert "facts.where" in data_of(table)["text/html"]
    assert "view by url" in data_of(app)["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data_of(live)
    assert "/b" in data_of(changed)["text/plain"]
    assert "/a" not in data_of(changed)["text/plain"]
    assert "<td" in data_of(report)["text/html"]
    states = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    assert [one["state"]["columns"] for one in states if "rows" in one["state"]] == [["url", "views"]]
