"""What the tests of the edges share: who sends, a row judged as not executed, late flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from relayhub.row import Row
from relayhub.states import Event, Hold, State
from tests.maintenance import NOT_FOUND, reprocessor, resolve_at
from tests.plant import Works
from tests.world import START_MS

COUNTS_MS: Final = START_MS + 65_001  # The first moment at which a NOT_FOUND of `doubt()` counts.


def not_executed(works: Works, guid: str = "G-1") -> Row:
    """Make a FAILED row of a doubt: the core has said NOT_FOUND twice, apart."""
    works.doubt(guid)
    resolve_at(works, COUNTS_MS, NOT_FOUND, guid=guid)
    row = resolve_at(works, COUNTS_MS + 30_000, NOT_FOUND, guid=guid)
    assert row.state is State.FAILED
    return row


def held_meanwhile(works: Works) -> None:
    """Hold the row, as the late answer of an earlier attempt's holder does."""
    works.move(Event.HELD, by="relay of attempt 1, late 0000", hold=Hold.CONTRADICTION)


def cancelled_meanwhile(works: Works) -> None:
    """Record a cancel of the row's channel."""
    works.move(Event.CANCEL_RECORDED, by="relay", cancel={"at": works.clock(), "by": "atm"})


def sent_by_its_channel(works: Works) -> None:
    """Send as its channel, anew or again; what never left is not asked about."""
    works.post()


def sent_by_the_hub(works: Works) -> None:
    """Let the hub send again what never left; the core has no record of it."""
    works.core.findings.append(NOT_FOUND)
    reprocessor(works)


# By name: how a request is sent, and whether there is a FAILED row before.
SENDERS: Final[Mapping[str, tuple[Callable[[Works], None], bool]]] = {
    "relay": (sent_by_its_channel, False),
    "resend": (sent_by_its_channel, True),
    "reprocessor": (sent_by_the_hub, True),
}


def ready(works: Works, who: str) -> tuple[Callable[[Works], None], str]:
    """Make what the sender needs; return how it sends, and the write by which it claims."""
    send, needs_row = SENDERS[who]
    if needs_row:
        works.fail()
        works.core.sent.clear()
    return send, "update_item" if needs_row else "put_item"


def passes(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
    """Let the request be: a fault that is none, before one that is."""
    return operation(**request)
