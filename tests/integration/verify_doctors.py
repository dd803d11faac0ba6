"""Doctors: each makes of the hub a relay with one fault, as such faults are made elsewhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from relayhub.replies import Reply
from tests.integration.verify_server import Call, Doctor, HubServer, Pass
from verify.play import transfer

When = Callable[[Call, Reply], bool]
Change = Callable[[Reply], Reply]


def told(code: str, /, **changes: Any) -> Doctor:
    """Return a relay whose documents with this code say something else."""
    return changed(lambda _, reply: reply.code == code, lambda reply: fields(reply, **changes))


def changed(when: When, change: Change) -> Doctor:
    """Return a relay that gives another answer at times."""

    def doctor(_server: HubServer, call: Call, pass_on: Pass) -> Reply:
        reply = pass_on(call)
        return change(reply) if when(call, reply) else reply

    return doctor


def sends_again(when: When) -> Doctor:
    """Return a relay that sends a request to the core once more at times."""

    def doctor(server: HubServer, call: Call, pass_on: Pass) -> Reply:
        reply = pass_on(call)
        if when(call, reply):
            server.send_to_core(call.guid, call.body or transfer())
        return reply

    return doctor


def on_turn(turn: int, then: Doctor) -> Doctor:
    """Return a relay whose fault shows from the so-manieth post of a GUID on."""

    def doctor(server: HubServer, call: Call, pass_on: Pass) -> Reply:
        count = server.notes.get(call.guid, 0) + 1
        if call.is_post:
            server.notes[call.guid] = count
        return then(server, call, pass_on) if call.is_post and count >= turn else pass_on(call)

    return doctor


def blind_to(*names: str) -> Doctor:
    """Return a relay that overlooks these headers."""
    return lambda _, call, pass_on: pass_on(call.without(*names))


def unkept(_server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Say that the act is cancelled, and forget it."""
    return _cancelled(call) if call.is_cancel else pass_on(call)


def unkept_and_sent(server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Say that the act is cancelled, and send it a moment later."""
    if not call.is_cancel:
        return pass_on(call)
    later(server, call)
    pass_on(call)
    return _cancelled(call)


def sends_later(server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Send by itself what was not sent, whoever waits."""
    reply = pass_on(call)
    if call.is_post and reply.code == "E902":
        later(server, call)
    return reply


def later(server: HubServer, call: Call, seconds: float = 0.4) -> None:
    """Send the act to the core after a moment."""
    threading.Timer(seconds, server.send_to_core, (call.guid, transfer())).start()


def first_body_counts(server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Take every request of a GUID for the first one, whatever its body."""
    if call.is_post:
        call = replace(call, body=server.notes.setdefault(f"body {call.guid}", call.body))
    return pass_on(call)


def lenient(server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Make something of a malformed request, and execute it."""
    reply = pass_on(call)
    if not call.is_post or reply.code != "E905":
        return reply
    made = server.notes["made"] = server.notes.get("made", 0) + 1
    headers = {"idempotency-key": f"made-{made}", "content-type": "application/json"}
    return pass_on(replace(call, headers=headers, body=transfer()))


def case_counts(_server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Take a UUID in capitals for another GUID."""
    if not call.guid.isupper():
        return pass_on(call)
    return pass_on(replace(call, headers={**call.headers, "idempotency-key": f"as-{call.guid}"}))


def no_guid_in_body(_server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Know the GUID from the header alone, and bare of quotes."""
    is_known = call.guid and not call.guid.startswith('"')
    return pass_on(call) if is_known or not call.is_post else bare(400)


def only_posts(_server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Know neither a status nor a cancel."""
    return pass_on(call) if call.is_post else bare(404)


def without_header(name: str, when: When = lambda *_: True) -> Doctor:
    """Return a relay whose answers lack the header."""

    def change(reply: Reply) -> Reply:
        kept = {key: value for key, value in reply.headers.items() if key != name}
        return replace(reply, headers=kept)

    return changed(when, change)


def with_header(name: str, value: str) -> Doctor:
    """Return a relay whose answers bear the header."""
    change: Change = lambda reply: replace(reply, headers={**reply.headers, name: value})  # noqa: E731
    return changed(lambda *_: True, change)


def fields(reply: Reply, **changes: Any) -> Reply:
    """Return the reply with other fields in its JSON body."""
    document = json.loads(reply.body) | changes
    return replace(reply, body=json.dumps(document).encode(), code=document.get("code"))


def bare(status: int) -> Reply:
    """Return an answer without a code, as a gateway gives one."""
    return Reply(status, "application/json", b'{"message":"Internal Server Error"}', None)


def _cancelled(call: Call) -> Reply:
    words = {"executed": "no", "resend": "no", "new_guid": "yes"}
    document = {"code": "E908", "guid": call.guid, "cancelled": True, **words}
    return Reply(200, "application/json", json.dumps(document).encode(), "E908")
