"""A kill counts as one in the core only if the core had the request and nothing else fits."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from typing import Any, Final

import pytest

from local.core_ledger import Receipt
from tests.chaos.book import Told
from tests.chaos.kills import KillList, confirmed, connections, owners
from tests.chaos.plan import Does

GUID: Final = "held-run-1-000001"  # The core keeps its sender waiting for 2.8 s.
CALL: Final = Told(GUID, Does.POST, 10_000, 10_400, 502, None)
RECEIPT: Final = Receipt("received", 10_050, GUID, 1)


def test_a_call_that_ended_by_a_kill_while_held_is_confirmed() -> None:
    """Received, killed, ended without a code at once."""
    assert confirmed([CALL], [RECEIPT], [10_300]) == [GUID]


@pytest.mark.parametrize(
    ("call", "receipt", "kills_ms"),
    [
        ({}, {}, []),
        ({}, {}, [10_040]),
        ({}, {}, [10_401]),
        ({"told_ms": 12_000}, {}, [10_300]),
        ({"told_ms": 12_900}, {}, [12_800]),
        ({"code": "E903"}, {}, [10_300]),
        ({"does": Does.AGAIN}, {}, [10_300]),
        ({}, {"attempt": 2}, [10_300]),
        ({}, {"kind": "refused"}, [10_300]),
        ({}, {"guid": "held-run-1-000002"}, [10_300]),
    ],
    ids=[
        "no kill",
        "killed before it was received",
        "killed after the call had ended",
        "the call ended long after the kill",
        "the core had answered by then",
        "an answer came",
        "another's call",
        "a later attempt",
        "refused",
        "another request",
    ],
)
def test_anything_else_is_not(
    call: dict[str, Any], receipt: dict[str, Any], kills_ms: list[int]
) -> None:
    """Where one of these is so, the kill is an ordinary one."""
    assert confirmed([replace(CALL, **call)], [replace(RECEIPT, **receipt)], kills_ms) == []


def test_only_the_first_call_is_looked_at() -> None:
    """A resend meets the row of the first; whoever was killed then was not in the core."""
    first = replace(CALL, sent_ms=9_000, told_ms=9_900, code="E906", status=503)
    assert confirmed([CALL, first], [RECEIPT], [10_300]) == []


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="reads /proc")  # noqa: PTH110
def test_the_owner_of_a_connection_is_found() -> None:
    """By the inode of its socket; the server's end is not taken for a client's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert connections(port) == set()
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0]:
            found = connections(port)
            assert found == {str(os.fstat(client.fileno()).st_ino)}
            assert owners(found, [os.getpid(), 1 << 30]) == [os.getpid()]
        assert owners(found, [os.getpid()]) == []


def test_a_process_that_is_gone_is_no_kill() -> None:
    """Only what was there to kill is counted."""
    kills = KillList()
    kills.kill("RelayFunction", [1 << 30])
    assert kills.count == 0
