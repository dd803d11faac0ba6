"""The deployed relay on the local stack: real processes, real sockets, signed requests."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.core_ledger import read_journal
from local.stack import Stack

pytestmark = pytest.mark.e2e

BODY = b'{"from":"A001","to":"A002","amount":100,"currency":"JPY"}'


def executed(stack: Stack, guid: str) -> int:
    """Return how often the core executed the GUID, from its journal file."""
    return sum(1 for each in read_journal(stack.journal) if each.guid == guid)


def test_200_posts_of_one_guid_are_executed_once(stack: Stack, core: CoreControl) -> None:
    """Every answer is the one answer's exact bytes, or E903."""
    del core
    stack.warm(20)
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: stack.atm.post("e2e-200", BODY), range(200)))
    codes = Counter(reply.code for reply in replies)
    assert set(codes) <= {"0000", "E903"}
    assert len({reply.body for reply in replies if reply.code == "0000"}) == 1
    assert executed(stack, "e2e-200") == 1


def test_a_relay_killed_after_the_bytes_left_leaves_a_row_that_says_sent(
    stack: Stack, core: CoreControl, atm: Channel
) -> None:
    """The channel gets the gateway's error without a code, a resend E903; the core ran once."""
    guid = "e2e-killed"
    core.set_faults([{"kind": "execute_then_hang", "guid": guid}])
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(atm.post, guid, BODY)
        ends = time.monotonic() + 10
        while not core.received(guid):
            assert time.monotonic() < ends, "the core never read the request"
            time.sleep(0.02)
        stack.kill_worker()
        assert call.result().code is None
    again = atm.post(guid, BODY)
    assert (again.status, again.code) == (409, "E903")
    assert int(again.headers["retry-after"]) >= 1
    row = stack.ledger_row(guid)
    assert row is not None
    assert row["state"] == "SENT"
    assert executed(stack, guid) == 1


@pytest.mark.parametrize("kind", ["big", "shift_jis"])
def test_a_replay_is_byte_for_byte(
    stack: Stack, core: CoreControl, atm: Channel, kind: str
) -> None:
    """500 KB from S3, and Shift_JIS with blanks and a NUL, come back as they first came."""
    guid = f"e2e-{kind}"
    core.set_faults([{"kind": kind, "guid": guid}])
    first, again = atm.post(guid, BODY), atm.post(guid, BODY)
    assert again.headers["idempotent-replayed"] == "true"
    assert [hashlib.sha256(each.body).hexdigest() for each in (first, again)] == [
        hashlib.sha256(first.body).hexdigest()
    ] * 2
    assert first.headers["content-type"] == again.headers["content-type"]
    assert (first.status, again.status) == (200, 200)
    assert executed(stack, guid) == 1


def test_a_refused_connection_is_sent_again_by_a_resend(
    stack: Stack, core: CoreControl, atm: Channel
) -> None:
    """Nothing left the hub, so the same GUID is claimed again as attempt 2."""
    guid = "e2e-refused"
    core.set_faults([{"kind": "refuse"}])
    assert atm.post(guid, BODY, headers={"Delivery": "interactive"}).code == "E902"
    core.clear()
    assert atm.post(guid, BODY).code == "0000"
    row = stack.ledger_row(guid)
    assert row is not None
    assert (row["attempt"], executed(stack, guid)) == (2, 1)


def test_another_channels_guid_tells_nothing(core: CoreControl, atm: Channel, app: Channel) -> None:
    """Its status is as that of an absent GUID, byte for byte but for the GUID itself."""
    del core
    atm.post("e2e-mine", BODY)
    other, absent = app.status("e2e-mine"), app.status("e2e-none")
    assert (other.status, absent.status) == (404, 404)
    assert other.body.replace(b"e2e-mine", b"e2e-none") == absent.body
    assert app.post("e2e-mine", BODY).code == "E904"


BAD = [
    ("two keys", [b"Idempotency-Key: e2e-a", b"Idempotency-Key: e2e-b"], BODY),
    ("too long", [b"Idempotency-Key: " + b"x" * 129], BODY),
    ("not ASCII", ["Idempotency-Key: e2e-\u00fc".encode()], BODY),
    ("none", [], BODY),
    ("null", [], b'{"guid":null}'),
    ("list", [], b'{"guid":["e2e-a"]}'),
    ("empty", [], b'{"guid":""}'),
    ("line break", [], b'{"guid":"e2e\\r\\na"}'),
    ("differ", [b"Idempotency-Key: e2e-a"], b'{"guid":"e2e-b"}'),
    ("same name twice", [b"Idempotency-Key: e2e-a"], b'{"amount":1,"amount":2}'),
    ("not JSON", [b"Idempotency-Key: e2e-a"], b'{"amount":'),
    ("too large", [b"Idempotency-Key: e2e-a"], b'{"a":"' + b"x" * 262_144 + b'"}'),
]


@pytest.mark.parametrize(("lines", "body"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_bad_input_is_refused_and_nothing_is_recorded(
    stack: Stack, core: CoreControl, atm: Channel, lines: list[bytes], body: bytes
) -> None:
    """A clear E905; no row, and the core is not called."""
    before, rows = len(core.received()), len(stack.scan_rows())
    reply = atm.raw("POST", "/transactions", [b"Content-Type: application/json", *lines], body)
    assert reply.status in {400, 413}
    document = reply.json()
    assert (document["code"], document["executed"], document["resend"]) == (
        *("E905", "unknown", "yes"),
    )
    assert len(document["detail"]) > 40
    assert (len(core.received()), len(stack.scan_rows())) == (before, rows)


def test_a_text_body_mangled_by_its_charset_is_refused(atm: Channel, core: CoreControl) -> None:
    """Bytes that are no UTF-8 do not survive a front that reads text."""
    del core
    body = "\u53e3\u5ea7".encode("shift_jis")
    reply = atm.post("e2e-mangled", body, content_type="text/plain")
    assert reply.code == "E905"
    assert "application/octet-stream" in reply.json()["detail"]
    assert atm.status("e2e-mangled").status == 404


def test_bytes_sent_as_octet_stream_reach_the_core_unharmed(
    stack: Stack, core: CoreControl, atm: Channel
) -> None:
    """What the row keeps for another attempt is what was sent, byte for byte."""
    guid, body = "e2e-bytes", bytes(range(256))
    core.set_faults([{"kind": "refuse"}])
    reply = atm.post(guid, body, content_type="application/octet-stream")
    assert reply.code == "E902"
    row = stack.ledger_row(guid)
    assert row is not None
    assert (row["request"], row["request_type"]) == (body, "application/octet-stream")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/transactions", 405),
        ("DELETE", "/transactions/e2e-a", 405),
        ("PUT", "/transactions", 405),
        ("POST", "/elsewhere", 404),
        ("GET", "/", 404),
    ],
)
def test_a_wrong_path_or_method_is_the_hubs_own_answer(
    atm: Channel, core: CoreControl, method: str, path: str, status: int
) -> None:
    """404 and 405 bear a code, so that a channel need not take them for "not confirmed"."""
    del core
    reply = atm.request(method, path)
    assert (reply.status, reply.code) == (status, "E905")
