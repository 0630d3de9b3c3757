"""A secret appears nowhere unless it is asked for by name."""

import copy
import dataclasses
import json
import logging
import pickle
import pprint
import traceback

import pytest

from headrace.core.secret import Secret

CANARY = "c4n4ry-5e5ame"


@dataclasses.dataclass(frozen=True)
class Login:
    user: str
    password: Secret


def fail_with(password: Secret) -> None:
    login = Login("ada", password)
    raise RuntimeError(f"{login.user} was refused with {password}", login)


def test_a_secret_is_revealed_only_on_request():
    assert Secret(CANARY).reveal() == CANARY


def test_no_way_of_printing_shows_a_secret():
    secret = Secret(CANARY)
    login = Login("ada", secret)
    printed = [
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r:>40}",
        f"{secret:>40}",
        "%s %r" % (secret, secret),  # noqa: UP031 - this way of printing too
        format(secret, "^30"),
    ]
    printed += [repr(login), repr([secret]), pprint.pformat({"login": login}), str(dataclasses.asdict(login)), ascii(secret)]
    assert [text for text in printed if CANARY in text] == []


def test_a_secret_has_no_dictionary_of_attributes_to_dump():
    with pytest.raises(TypeError):
        vars(Secret(CANARY))
    with pytest.raises(TypeError):
        json.dumps({"password": Secret(CANARY)})


def test_a_traceback_does_not_show_a_secret_even_with_its_local_variables():
    with pytest.raises(RuntimeError) as caught:
        fail_with(Secret(CANARY))
    plain = "".join(traceback.format_exception(caught.value))
    with_locals = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "Secret(***)" in with_locals
    assert CANARY not in plain
    # This very function holds the canary; the frames from the failing call on must not.
    assert CANARY not in with_locals[with_locals.index("in fail_with") :]


def test_a_log_line_does_not_show_a_secret(caplog):
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("headrace").warning("connecting as %s with %r", Login("ada", Secret(CANARY)), Secret(CANARY))
        try:
            fail_with(Secret(CANARY))
        except RuntimeError:
            logging.getLogger("headrace").exception("refused")
    assert "refused" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, lambda secret: pickle.loads(pickle.dumps(secret))])
def test_a_secret_stays_hidden_and_whole_after_a_journey(travel):
    arrived = travel(Secret(CANARY))
    assert arrived.reveal() == CANARY
    assert CANARY not in repr(arrived)


def test_secrets_compare_by_their_text():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert not Secret("")
