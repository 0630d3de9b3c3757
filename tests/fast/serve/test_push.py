"""A subscriber's folded table equals the view, whatever is cut, restarted or slow."""

import json
import random
from itertools import islice

import pytest
import websockets.sync.client
from websockets.exceptions import ConnectionClosed

import headrace as hr
from tests.support.examples import seeds
from tests.support.processes import PATIENCE


def folded(rows, message):
    """A table by url after a message."""
    if message["type"] == "snapshot":
        if message["first"]:
            rows.clear()
        rows.update({row["url"]: row["views"] for row in message["rows"]})
    for change in message.get("changes", ()):
        if change["op"] == "delete":
            rows.pop(change["row"]["url"], None)
        else:
            rows[change["row"]["url"]] = change["row"]["views"]
    return rows


def connection(client):
    return hr.connect(client.server.url, token=client.server.tokens.read)


def until(messages, epoch, rows):
    for message in messages:
        folded(rows, message)
        if message["epoch"] >= epoch and message.get("last", True):
            return message
    raise AssertionError("the stream ended")


def row(url, views):
    return {"url": url, "user": "ada", "views": views}


def test_a_subscriber_gets_the_rows_then_the_changes_of_each_epoch(totals, serving):
    totals.epoch([row("/a", 1), row("/b", 2)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        messages = connection(client).view("totals").messages()
        first = next(messages)
        assert (first["type"], first["epoch"], len(first["rows"])) == ("snapshot", 1, 2)
        totals.epoch([row("/a", 5), row("/c", 1)], [row("/b", 2)])
        changes = next(message for message in messages if message["type"] == "changes")
        messages.close()
    told = {change["row"]["url"]: change["op"] for change in changes["changes"]}
    assert told == {"/a": "update", "/c": "insert", "/b": "delete"}
    assert all({"partition", "offset"} <= set(change) for change in changes["changes"])


def test_what_a_subscriber_sends_over_its_socket_has_no_meaning(totals, serving):
    totals.epoch([row("/a", 1)])
    with serving() as client:
        headers = {"Authorization": f"Bearer {client.server.tokens.read}"}
        with websockets.sync.client.connect(f"{client.socket_url}/api/v1/views/totals", additional_headers=headers) as opened:
            assert json.loads(opened.recv(timeout=PATIENCE))["type"] == "snapshot"
            opened.send(b"bytes")
            opened.send("text")
            totals.epoch([row("/b", 2)])
            kinds = [json.loads(opened.recv(timeout=PATIENCE))["type"] for _ in range(3)]
    assert set(kinds) == {"changes", "progress"}


def test_changes_from_python_are_a_reset_then_inserts_updates_and_deletes(totals, serving):
    totals.epoch([row("/a", 1)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        changes = connection(client).view("totals").changes()
        begun = [(change.op, change.row.get("views")) for change in islice(changes, 2)]
        totals.epoch([row("/a", 2)])
        later = next(changes)
        changes.close()
    assert begun == [("reset", None), ("insert", 1)]
    assert (later.op, later.row["views"], later.epoch) == ("update", 2, 2)


def test_silence_is_told_from_a_stall_by_progress_with_the_watermark(totals, serving):
    totals.epoch([row("/a", 1)], watermark=1_767_268_800_000_000)
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        messages = connection(client).view("totals").messages()
        progress = next(message for message in messages if message["type"] == "progress")
        messages.close()
    assert (progress["epoch"], progress["watermark"]) == (1, "2026-01-01T12:00:00+00:00")


def test_a_filter_lets_go_of_rows_that_do_not_pass_any_more(totals, serving):
    totals.epoch([row("/a", 10), row("/b", 1)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        messages, rows = connection(client).view("totals").messages(**{"views.gt": 5}), {}
        until(messages, 1, rows)
        assert rows == {"/a": 10}
        until(messages, totals.epoch([row("/a", 3), row("/b", 7)]), rows)
        assert rows == {"/b": 7}
        messages.close()


def test_a_slow_subscriber_gets_the_net_changes_of_many_epochs(totals, serving):
    totals.epoch([row("/a", 0), row("/gone", 0)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        place = next(connection(client).view("totals").messages())["id"]
        for number in range(1, 6):
            totals.epoch([row("/a", number), row("/short", number)])
        totals.epoch([row("/new", 1)], [row("/short", 5), row("/gone", 0)])
        client.get("/api/v1/views/totals", params={"epoch": 7}).raise_for_status()
        message = next(connection(client).view("totals").messages(since=place))
    told = {change["row"]["url"]: (change["op"], change["row"]["views"]) for change in message["changes"]}
    assert told == {"/a": ("update", 5), "/new": ("insert", 1), "/gone": ("delete", 0)}


@pytest.mark.parametrize("seed", seeds(24))
def test_a_table_folded_over_cuts_and_restarts_of_the_server_equals_the_view(written, serving, seed):
    draw = random.Random(seed)
    view = written(tasks=draw.choice([1, 3]))
    truth, rows, place = {}, {}, None

    def epoch():
        changed = {f"/{draw.randrange(8)}": draw.randrange(100) for _ in range(draw.randrange(4))}
        gone = [url for url in list(truth) if url not in changed and draw.random() < 0.2]
        view.epoch([row(url, views) for url, views in changed.items()], [row(url, truth.pop(url)) for url in gone])
        truth.update(changed)

    epoch()
    for _ in range(draw.randrange(1, 4)):
        with serving() as client:
            for _ in range(draw.randrange(1, 4)):
                for _ in range(draw.randrange(3)):
                    epoch()
                client.get("/api/v1/views/totals", params={"epoch": view.number}).raise_for_status()
                messages = connection(client).view("totals").messages(since=place)
                # Cut amid the stream: what came last is where it goes on.
                for message in messages:
                    folded(rows, message)
                    place = message.get("id", place)
                    if message["epoch"] >= view.number and message.get("last", True):
                        break
                    if draw.random() < 0.3:
                        break
                messages.close()
            place = until(connection(client).view("totals").messages(since=place), view.number, rows)["id"]
            assert rows == truth


def test_a_websocket_gives_the_same_messages_and_goes_on_from_a_place(totals, serving):
    totals.epoch([row("/a", 1)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        url = f"{client.socket_url}/api/v1/views/totals?token={client.server.tokens.read}"
        with websockets.sync.client.connect(url, open_timeout=PATIENCE) as opened:
            first = json.loads(opened.recv(timeout=PATIENCE))
        totals.epoch([row("/a", 2)])
        with websockets.sync.client.connect(f"{url}&since={first['id']}", open_timeout=PATIENCE) as opened:
            second = json.loads(opened.recv(timeout=PATIENCE))
    assert (first["type"], first["rows"]) == ("snapshot", [row("/a", 1)])
    assert (second["type"], second["changes"][0]["row"]["views"]) == ("changes", 2)


def test_a_client_that_is_cut_amid_a_snapshot_begins_with_a_new_one(totals, serving):
    totals.epoch([row("/old", 1)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        view = connection(client).view("totals")
        totals.epoch([row(f"/{number}", number) for number in range(2_500)])
        client.get("/api/v1/views/totals", params={"epoch": 2}).raise_for_status()
        first = next(view.messages())
        again = next(view.messages(since=first["id"]))
    assert (first["first"], first["last"], len(first["rows"])) == (True, False, 1_000)
    assert (again["type"], again["first"]) == ("snapshot", True)


def test_a_socket_to_a_view_that_is_not_there_is_closed_with_the_reason(totals, serving):
    totals.epoch([row("/a", 1)])
    with serving() as client:
        url = f"{client.socket_url}/api/v1/views/other?token={client.server.tokens.read}"
        with websockets.sync.client.connect(url, open_timeout=PATIENCE) as opened, pytest.raises(ConnectionClosed) as closed:
            opened.recv(timeout=PATIENCE)
    assert closed.value.rcvd.code == 4404
    assert "other" in closed.value.rcvd.reason


def test_a_view_that_was_made_anew_begins_with_a_snapshot(totals, serving, written):
    totals.epoch([row("/old", 1)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        messages, rows = connection(client).view("totals").messages(), {}
        until(messages, 1, rows)
        totals.log.delete_topic("totals")
        for file in totals.place.checkpoint.rglob("0"):
            file.unlink()
        fresh = written()
        fresh.epoch([row("/new", 2)])
        until(messages, 1, rows)
        while rows != {"/new": 2}:
            folded(rows, next(messages))
        messages.close()


def test_subscribers_at_one_epoch_get_the_message_of_the_first_and_one_far_behind_gets_all_changes_in_one(totals, serving):
    totals.epoch([row("/a", 1)])
    with serving() as client:
        view = connection(client).view("totals")
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        place = next(view.messages())["id"]
        totals.epoch([row("/a", 2)])
        client.get("/api/v1/views/totals", params={"epoch": 2}).raise_for_status()
        assert next(view.messages(since=place))["epoch"] == 2
        totals.epoch([row("/a", 3)])
        client.get("/api/v1/views/totals", params={"epoch": 3}).raise_for_status()
        # One that comes later from the same place goes the same way, so that the message is made once.
        assert [message["epoch"] for message in islice(view.messages(since=place), 2)] == [2, 3]
        for views in range(4, 14):
            totals.epoch([row("/a", views)])
        client.get("/api/v1/views/totals", params={"epoch": 13}).raise_for_status()
        (change,) = next(view.messages(since=place))["changes"]
        assert (change["op"], change["row"]["views"]) == ("update", 13)
