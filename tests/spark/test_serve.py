"""A job on Spark and a server beside it: what the job commits is what readers and subscribers get."""

import headrace as hr
from headrace.ops.servers.ports import free_ports
from headrace.serve.server import Server, ServeSettings


def test_what_a_job_commits_is_pulled_pushed_and_queried(tmp_path):
    app = hr.App("shop", home=tmp_path)
    orders = app.stream("orders", schema="customer string, amount bigint", key="customer")
    app.view("spent", orders.group("customer", ttl=None).agg(total="sum(amount)"))

    def send(*rows):
        with app.log.producer() as producer:
            for customer, amount in rows:
                producer.send("orders", {"customer": customer, "amount": amount})
        return app.run(until="caught-up").epoch

    epoch = send(("ada", 1), ("bob", 2))
    server = Server(tmp_path, ServeSettings(port=free_ports(1)[0]))
    with server.background():
        connection = hr.connect(server.url, token=server.tokens.read)
        view = connection.view("spent")
        assert sorted(view.read(epoch=epoch).to_pylist(), key=lambda row: row["customer"]) == [
            {"customer": "ada", "total": 1},
            {"customer": "bob", "total": 2},
        ]
        changes, rows = view.changes(), {}
        while len(rows) < 2:
            change = next(changes)
            rows.update({change.row["customer"]: change.row["total"]} if change.row else {})
        epoch = send(("ada", 10), ("eve", 3))
        while rows != {"ada": 11, "bob": 2, "eve": 3}:
            change = next(changes)
            rows[change.row["customer"]] = change.row["total"]
        changes.close()
        assert connection.sql("select sum(total) as all from spent").to_pylist() == [{"all": 16}]
        assert view.read(epoch=epoch, customer="eve")["total"].to_pylist() == [3]
