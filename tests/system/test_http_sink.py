"""A service behind a URL, whose writers are killed."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from headrace.testing.conformance.cases import a_writer_killed_at_any_step_has_written_all_or_nothing
from tests.fast.connectors.http.test_output import HttpSubject, Service


@pytest.mark.parametrize("case", [a_writer_killed_at_any_step_has_written_all_or_nothing])
def test_a_service_that_heeds_keys_keeps_what_an_output_promises(case: Any) -> None:
    with Service() as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        case(HttpSubject(service))
        service.shutdown()
        thread.join()
