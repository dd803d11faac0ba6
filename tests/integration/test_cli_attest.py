"""`attest`: what became of a row in doubt, by evidence, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.cli_kit import Office, open_office
from tests.world import EXECUTED, World


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack and a person who looks after it."""
    return open_office(world)


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    """Return a file with the core's answer."""
    path = tmp_path / "answer.json"
    path.write_bytes(EXECUTED.body)
    return path


def test_an_executed_row_is_attested_by_the_cores_own_answer(office: Office, answer: Path) -> None:
    """Its code is read from the file; the channel gets its bytes."""
    office.world.doubt()
    told = office.act("attest", "executed", "G-1", "--answer", str(answer))
    assert (told["row"]["state"], told["row"]["code"]) == ("DONE", "0000")
    reply = office.world.post()
    assert (reply.status, reply.body) == (200, EXECUTED.body)
    assert office.logs.of("intent")[0]["arguments"] == {
        "status": 200,
        "type": "application/json",
        "code": "0000",
    }


@pytest.mark.parametrize(
    ("body", "more", "said"),
    [
        (b'{"code":"B201"}', (), "'B201' does not mean executed"),
        (b'{"code":"9999"}', (), "no definite answer of the core: unknown_code"),
        (b"{", (), "not_json"),
        (b'{"ok":true}', (), "no_code"),
        (b'{"code":"0000"}', ("--status", "503"), "gateway_status"),
        (b'{"code":"0000"}', ("--code", "0001"), "codes_differ"),
        (b"0000", ("--type", "text/plain"), "no_code"),
    ],
    ids=["refused", "unknown", "no json", "no code", "a gateway", "two codes", "no header"],
)
def test_what_is_no_answer_of_the_core_attests_nothing(
    office: Office, answer: Path, body: bytes, more: tuple[str, ...], said: str
) -> None:
    """By the very rules by which a function reads the core's answer."""
    before = office.world.doubt()
    answer.write_bytes(body)
    told = office.refused("attest", "executed", "G-1", "--answer", str(answer), *more)
    assert said in told
    assert office.world.row() == before


def test_an_answer_that_is_larger_than_any_is_refused(office: Office, answer: Path) -> None:
    """As the hub refuses it of the core itself."""
    office.world.doubt()
    office.set(ANSWER_BYTES_MAX=str(len(EXECUTED.body) - 1))
    said = office.refused("attest", "executed", "G-1", "--answer", str(answer))
    assert "is larger than any answer may be" in said


def test_an_answer_of_another_type_bears_its_code_beside_it(office: Office, answer: Path) -> None:
    """As the core's header does."""
    office.world.doubt()
    answer.write_bytes(b"\x83\x65")
    words = ("--type", "application/octet-stream", "--code", "0000", "--status", "201")
    office.act("attest", "executed", "G-1", "--answer", str(answer), *words)
    reply = office.world.post()
    assert (reply.status, reply.content_type, reply.body) == (201, words[1], b"\x83\x65")


def test_not_executed_is_attested_from_its_time_on(office: Office) -> None:
    """`show` names the time; before it the command is refused with it."""
    office.world.doubt()
    early = ("attest", "not-executed", "G-1", "--complete-through", "2027-01-15T08:05:00Z")
    assert "not executed can be said from 2027-01-15T08:01:" in office.refused(*early)
    office.world.clock.advance(300)
    assert office.act(*early)["row"]["state"] == "FAILED"
    assert office.world.held().why == "operator"
    assert office.world.hints() == [{"guid": "G-1", "attempt": 1}]


def test_a_time_without_an_offset_is_refused(office: Office) -> None:
    """Nobody guesses whose midnight is meant."""
    office.world.doubt()
    said = office.refused(
        "attest", "not-executed", "G-1", "--complete-through", "2027-01-15T08:05:00"
    )
    assert "no offset from UTC" in said


def test_no_amount_and_no_byte_is_in_the_operators_log(office: Office, answer: Path) -> None:
    """Whatever is done: the row's declared fields and bodies stay in the row."""
    office.world.deploy(money_fields=(("amount", "/amount"), ("reference", "/ref")))
    body = b'{"amount":77123,"ref":"REF-77"}'
    answer.write_bytes(b'{"code":"0000","balance":"99321"}')
    for guid in ("G-1", "G-2"):
        office.world.doubt(guid, body=body)
    office.world.fail("G-3", body=body)
    assert office.world.held("G-1").amount == "77123"
    for words in (
        ("attest", "executed", "G-1", "--answer", str(answer)),
        ("hold", "G-2"),
        ("release", "G-2"),
        ("park", "G-3"),
        ("redrive", "G-3"),
        ("close", "G-3"),
    ):
        office.act(*words)
    told = json.dumps(office.logs.lines)
    assert "G-3" in told
    assert not {each for each in ("77123", "REF-77", "99321") if each in told}
