"""What comes next for a row: what a resend of its channel is told and does, and the hub's own turn.

It tells a person what the functions would do with the row as it is; they decide by the row as it
is then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cli.desk import Desk
from relayhub.controls import Job, Switches
from relayhub.flows.steps import counts_from
from relayhub.replies import code_of
from relayhub.row import Row, hub_sends
from relayhub.states import Code, State, told
from relayhub.times import rfc3339


@dataclass(frozen=True)
class Resend:
    """What the same request is told when it comes again over HTTP; `sends`: the core gets it."""

    code: str
    sentence: str
    sends: bool = False


def of_resend(desk: Desk, row: Row, switches: Switches) -> Resend:
    """Return what the relay would do with a resend now."""
    if row.state is State.FAILED and not row.hold:
        return _of_failed(desk, row, switches)
    code = code_of(row)
    if row.hold:
        return Resend(code, f"is told {code}, since it is held ({row.hold}); nothing is sent")
    if row.state is State.DONE and row.has_answer():
        return Resend(code, f"gets the stored answer again ({code}); nothing is sent")
    title = told(code, desk.settings.definite_codes).title
    return Resend(code, f"is told {code}, {title}; nothing is sent")


def _of_failed(desk: Desk, row: Row, switches: Switches) -> Resend:
    if row.cancel or (row.valid_until or 0) <= desk.now_ms():
        why = "its channel cancelled it" if row.cancel else "its validity is over"
        return Resend(Code.E908, f"ends it with {Code.E908}, since {why}; nothing is sent")
    if switches.core is not None:
        return Resend(Code.E902, f"is told {Code.E902}, since the core is closed")
    if row.doubted and row.core != desk.settings.core_name:
        return Resend(Code.E902, f"is told {Code.E902}: it was sent to another core before")
    if row.doubted:
        asked = "has the core asked about it first, and if that has no record, is sent"
    else:
        asked = "is sent"
    return Resend("", f"{asked} as attempt {row.attempt + 1}", sends=True)


def of_hub(desk: Desk, row: Row, switches: Switches) -> Iterator[str]:
    """Return what the hub does with the row by itself, and from when, in sentences."""
    if row.hold and not (row.state is State.UNKNOWN and row.hold == "restored"):
        yield f"nobody but a person moves it on: it is held ({row.hold})"
    elif row.state is State.DONE:
        yield _kept(row)
    elif row.state is State.FAILED:
        yield from _of_unsent(desk, row, switches)
    else:
        yield _WHO[row.state].format(at=_at(row.due_at))
        if row.state is State.UNKNOWN and switches.core is not None:
            yield "the core is closed: it is asked about nothing"
        if Job.RESOLVER in switches.held:
            yield "the resolver is held: it does nothing until it is released"
    if row.state is State.UNKNOWN:
        yield from _of_doubt(desk, row)


def _kept(row: Row) -> str:
    if row.expires_at is None:
        return "it is kept until a person releases it"
    return f"it has ended, and is kept until {rfc3339(row.expires_at * 1000)}"


def _of_unsent(desk: Desk, row: Row, switches: Switches) -> Iterator[str]:
    if not hub_sends(row):
        yield f"the hub does not send it by itself; at {_at(row.valid_until)} it ends (E908)"
        return
    limit = desk.settings.resends_max
    yield (
        f"the reprocessor sends it from {_at(row.due_at)}, until {_at(row.valid_until)}; the hub"
        f" has sent it again {row.resends} of {limit} times"
    )
    if switches.core is not None:
        yield "the core is closed: it waits"
    if Job.REPROCESSOR in switches.held:
        yield "the reprocessor is held: it does nothing until it is released"


def _of_doubt(desk: Desk, row: Row) -> Iterator[str]:
    settings = desk.settings
    if row.ask_after is None or row.sent_at is None:
        yield "it bears no time from when a NOT_FOUND proves anything: hold and release it"
        return
    from_at = rfc3339(counts_from(desk.hub, row))
    over_at = rfc3339(row.sent_at + (settings.core_memory_s - settings.clock_skew_s) * 1000)
    yield (
        f"a NOT_FOUND counts when asked for after {from_at}, twice {settings.not_found_apart_s} s"
        f" apart, and until {over_at}; a person may attest by a journal complete through a"
        " later time than that first one"
    )


def _at(ms: int | None) -> str:
    return "-" if ms is None else rfc3339(ms)


_WHO = {
    State.RECEIVED: "its message is to come; from {at} the resolver takes it for not sent",
    State.SENT: "its sender may be at it; from {at} the resolver takes it into doubt",
    State.UNKNOWN: "the resolver asks the core about it from {at}",
}


def document(desk: Desk, row: Row, switches: Switches) -> dict[str, Any]:
    """Return the outlook for a JSON document."""
    resend = of_resend(desk, row, switches)
    return {
        "resend": {"code": resend.code or None, "sends": resend.sends, "what": resend.sentence},
        "next": list(of_hub(desk, row, switches)),
    }
