"""A server that stops: nobody is cut off."""

import threading

import httpx2 as httpx

from headrace.ops.servers.ports import free_ports
from headrace.serve.server import Server, ServeSettings
from tests.support.processes import PATIENCE, until


def test_a_server_that_stops_ends_its_streams_and_tells_who_waits(totals, home):
    totals.epoch([{"url": "/", "user": "ada", "views": 1}])
    ended, waited, began = [], [], threading.Barrier(3)
    server = Server(home, ServeSettings(port=free_ports(1)[0]))

    def listen(path):
        with client.stream("GET", path, headers={"Accept": "text/event-stream"}) as answer:
            lines = answer.iter_lines()
            next(lines)
            began.wait(PATIENCE)
            # A stream that is cut off raises.
            ended.append(len(list(lines)))

    def wait():
        waited.append(client.get("/api/v1/views/totals?epoch=99&wait=100").status_code)

    paths = ("/api/v1/views/totals", "/api/v1/jobs/totals-job/status")
    threads = [threading.Thread(target=listen, args=(path,)) for path in paths] + [threading.Thread(target=wait)]
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.tokens.read}"}, timeout=PATIENCE) as client:
        with server.background():
            until(lambda: client.get("/api/v1/views/totals").status_code == 200)
            for thread in threads:
                thread.start()
            began.wait(PATIENCE)
            # The stream of the view, and who waits for an epoch of it.
            until(lambda: (signal := server.hub._signals.get("totals")) is not None and signal.waiting == 2)
        for thread in threads:
            thread.join(PATIENCE)
    assert len(ended) == 2
    assert waited == [503]
