"""`show`: one row, what was done to it, and what would happen to a resend."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from cli import outlook
from relayhub.controls import HUB, Switch
from relayhub.states import Event, Hold
from tests.integration.cli_kit import MONEY, Office, open_office, paid
from tests.integration.operate_kit import NOW_MS, situations
from tests.maintenance import NOT_FOUND, put_rows
from tests.world import World, document


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack and a person who looks after it."""
    return open_office(world)


def test_show_tells_where_a_row_stands_and_what_was_done_to_it(office: Office) -> None:
    """The facts, the timeline with who and why, the next turn, and from when a word counts."""
    office.world.deploy(money_fields=MONEY)
    office.world.doubt(body=paid("1000"))
    office.act("hold", "G-1")
    office.act("release", "G-1")
    office.world.clock.advance(90)
    told = office.terminal.json("show", "G-1")
    row = told["row"]
    assert (row["state"], row["amount"], row["currency"]) == ("UNKNOWN", "1000", "JPY")
    assert row["accepted_at"] == "2027-01-15T08:00:00.000Z"
    assert told["age_ms"] == 90_000
    assert [each["event"] for each in told["history"]] == [
        *("claimed", "doubted", "held", "released"),
    ]
    assert told["history"][2]["by"] == "operator role/Admin/alice"
    assert told["history"][2]["reason"] == "as agreed"
    assert told["resend"]["code"] == "E901"
    assert not told["resend"]["sends"]
    assert told["next"][0].startswith(
        "the resolver asks the core about it from 2027-01-15T08:00:00"
    )
    assert "a NOT_FOUND counts when asked for after 2027-01-15T08:02:05.000Z" in told["next"][1]
    assert not {"request", "response", "fingerprint"} & set(row)
    assert "request" not in told


def test_show_is_readable_for_people(office: Office) -> None:
    """The same as tables and sentences, without a byte of the request."""
    office.world.fail(body=b'{"secret":"s3cr3t"}')
    result = office.run("show", "G-1")
    assert result.exit_code == 0, result.output
    for each in ("FAILED  G-1, of atm, 0 s old", "relay", "SENT > FAILED", "What comes next"):
        assert each in result.stdout
    assert "A resend by its channel is sent as attempt 2." in result.stdout
    assert "the hub has sent it again 0 of 20 times" in result.stdout
    assert "s3cr3t" not in result.output


def test_bytes_are_shown_only_when_they_are_asked_for(office: Office) -> None:
    """As text where they are UTF-8, else in base64."""
    office.world.post(body=b'{"a":1}')
    assert office.terminal.json("show", "G-1", "--body")["request"]["text"] == '{"a":1}'
    office.world.edit(response=b"\x83\x65", response_type="text/plain")
    told = office.terminal.json("show", "G-1", "--body")["answer"]
    assert base64.b64decode(told["base64"]) == b"\x83\x65"
    assert '{"a":1}' in office.run("show", "G-1", "--body").stdout


def test_a_large_answer_is_read_from_the_bucket(office: Office) -> None:
    """And what is not what was stored is told as such."""
    office.world.post()
    stored = office.world.hub.store.put("G-1", "claim-1", b"large")
    office.world.edit(response=None, response_object=stored)
    assert office.terminal.json("show", "G-1", "--body")["answer"]["text"] == "large"
    office.world.edit(response_object={**stored, "bytes": 1})
    result = office.run("show", "G-1", "--body")
    assert result.exit_code == 1
    assert "the bucket of answers failed: not the bytes that were stored" in result.stderr


def test_a_row_that_is_not_there_is_told(office: Office) -> None:
    """Its channel may still send it."""
    result = office.run("show", "absent")
    assert result.exit_code == 2
    assert "the ledger has no row of absent" in result.stderr


def test_a_row_in_doubt_is_not_asked_about_while_the_core_is_closed(office: Office) -> None:
    """A person who waits for the resolver's turn is told that there is none."""
    office.world.doubt()
    said = "the core is closed: it is asked about nothing"
    assert said not in office.terminal.json("show", "G-1")["next"]
    office.world.hub.controls.close_core(Switch("alice", "a stop", NOW_MS))
    assert said in office.terminal.json("show", "G-1")["next"]


def test_what_was_dropped_of_a_long_history_is_counted(office: Office) -> None:
    """Between the first entry, which is kept, and the newest."""
    office.world.fail()
    for _ in range(12):
        office.world.move(Event.HELD, by="operator x", hold=Hold.OPERATOR)
        office.world.move(Event.RELEASED, by="operator x", hold=None)
    told = office.terminal.json("show", "G-1")["history"]
    assert told[1] == {"dropped": 6}
    assert "(6 more)" in office.run("show", "G-1").stdout


@pytest.mark.parametrize("closed_by", [None, "alice", HUB])
def test_what_show_says_of_a_resend_is_what_the_relay_does(
    office: Office, closed_by: str | None
) -> None:
    """In every situation that a row can be in, the core open or closed: code and call."""
    world = office.world
    world.clock.ms = NOW_MS
    if closed_by:
        probe_at = NOW_MS if closed_by == HUB else None
        world.hub.controls.close_core(Switch(closed_by, "a stop", NOW_MS, probe_at))
    world.post("sample")
    names = ("fingerprint", "scheme", "operation")
    shape = {name: getattr(world.held("sample"), name) for name in names}
    rows = [replace(situation.row(), **shape) for situation in situations()]
    put_rows(rows)
    desk = office.desk()
    switches = desk.controls.read()
    for row in rows:
        told = outlook.of_resend(desk, row, switches)
        before = len(world.core.sent)
        world.core.findings = [NOT_FOUND]
        reply = world.post(row.guid)
        sent = len(world.core.sent) > before
        assert (told.sends, told.code) == (sent, "" if sent else reply.code), row.guid
        assert (told.code or "attempt 2") in told.sentence or row.attempt == 0, row.guid


def test_a_resend_of_what_another_core_may_have_is_not_sent(office: Office) -> None:
    """Its inquiry would say nothing about the row."""
    world = office.world
    world.doubt()
    world.not_found()
    world.edit(core="old")
    told = office.terminal.json("show", "G-1")["resend"]
    assert (told["code"], told["sends"]) == ("E902", False)
    assert "another core" in told["what"]
    assert document(world.post())["code"] == "E902"
    assert len(world.core.sent) == 1
