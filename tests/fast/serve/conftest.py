"""A served view: a job that only writes, and a real server on a free port."""

from contextlib import ExitStack, contextmanager

import httpx2 as httpx
import pytest

from headrace.ops.servers.ports import free_ports
from headrace.serve.server import Server, ServeSettings
from headrace.testing.written import WrittenView
from tests.support.processes import PATIENCE

COLUMNS = "url string, user string, views bigint"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def written(home):
    """Makes views that are written epoch by epoch."""
    with ExitStack() as opened:

        def make(columns=COLUMNS, key=("url",), **options):
            view = WrittenView(home, columns, key, **options)
            opened.callback(view.close)
            return view

        yield make


@pytest.fixture
def totals(written):
    return written()


class Client(httpx.Client):
    """A client with the token of a role."""

    def __init__(self, server, role="operate"):
        token = getattr(server.tokens, role)
        super().__init__(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)
        self.server = server

    @property
    def socket_url(self):
        return self.server.url.replace("http", "ws")


@pytest.fixture
def serving(home):
    """Starts a server on the home; what it returns is a client that may do everything."""

    @contextmanager
    def started(port=None, **settings):
        server = Server(home, ServeSettings(port=port or free_ports(1)[0], **settings))
        with server.background(), Client(server) as client:
            yield client

    return started
