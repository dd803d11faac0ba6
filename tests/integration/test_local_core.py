"""The local core: it executes whatever it is asked, and its journal tells the truth."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local.core import read_journal, read_received
from local.core_client import ROOT, CoreProcess, Counts, ServerError
from tests.integration.local_core_wire import (
    TRANSFER,
    How,
    get_bytes,
    inquire,
    post,
    post_bytes,
    talk,
    until,
)

OPENING = 1_000_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoreProcess]:
    """Run one core for the module."""
    with CoreProcess(tmp_path_factory.mktemp("core") / "journal.jsonl") as core:
        yield core


@pytest.fixture
def core(running: CoreProcess) -> CoreProcess:
    """Give the core as new."""
    running.control.reset()
    return running


def test_a_transfer_moves_the_money_once_and_is_in_the_journal(core: CoreProcess) -> None:
    """One request: the money moved, one line that says all about it."""
    answer = post(core.port, "g1", "X-Attempt: 3", "X-Operation: transfer")
    assert (answer.status, answer.code, answer.is_whole) == (200, "0000", True)
    (line,) = read_journal(core.journal)
    assert (line.seq, line.guid, line.attempt, line.operation) == (1, "g1", 3, "transfer")
    assert (line.source, line.target, line.amount, line.code) == ("A001", "A002", 3000, "0000")
    assert json.loads(answer.body)["reference"] == line.reference
    assert core.control.accounts()["A001"] == OPENING - 3000
    assert core.control.accounts()["A002"] == OPENING + 3000


def test_asked_twice_it_executes_twice(core: CoreProcess) -> None:
    """The same GUID and attempt again: the money moves again; this is the danger shown."""
    answers = {post(core.port, "g1", "X-Attempt: 1").body for _ in range(2)}
    assert len(answers) == 2
    assert core.control.accounts()["A001"] == OPENING - 6000
    assert core.control.counts() == {"g1": Counts(received=2, executed=2)}


def test_parallel_requests_all_execute_and_the_balances_add_up(core: CoreProcess) -> None:
    """320 requests over 32 connections: as many lines, no yen lost."""
    with ThreadPoolExecutor(32) as pool:
        seen = list(pool.map(lambda n: post(core.port, f"g{n % 160}"), range(320)))
    assert {answer.code for answer in seen} == {"0000"}
    executions = read_journal(core.journal)
    assert [execution.seq for execution in executions] == list(range(1, 321))
    accounts = core.control.accounts()
    assert sum(accounts.values()) == 10 * OPENING
    assert accounts["A001"] == OPENING - 320 * 3000


def test_the_journal_is_there_before_the_first_byte_of_the_answer(core: CoreProcess) -> None:
    """An answer that has only begun: the line can be read already."""
    core.control.set_faults([{"kind": "drip", "seconds": 0.5}])
    begun = post(core.port, "g1", within_s=0.3)
    assert begun.how is How.SILENT
    assert begun.raw in (b"H", b"")
    assert [execution.guid for execution in read_journal(core.journal)] == ["g1"]


def test_the_journal_outlives_a_kill_and_the_core_knows_it_again(tmp_path: Path) -> None:
    """SIGKILL while the answer hangs: started again, balances and inquiry are as before."""
    core = CoreProcess(tmp_path / "journal.jsonl")
    with core:
        core.control.set_faults([{"kind": "execute_then_hang", "guid": "g1"}])
        post(core.port, "g1", within_s=0.2)
        core.control.set_faults([{"kind": "shift_jis", "guid": "g2"}])
        original = post(core.port, "g2")
        talk(core.port, post_bytes("g3", body=b"{}"))
        core.kill()
        assert [execution.guid for execution in read_journal(core.journal)] == ["g1", "g2"]
    with core:
        assert core.control.accounts()["A001"] == OPENING - 6000
        assert inquire(core.port, "g1").headers["x-verdict"] == "PROCESSED"
        assert inquire(core.port, "g2").body == original.body
        assert inquire(core.port, "g3").code == "E500"
        assert json.loads(post(core.port, "g4").body)["reference"] == "C00000003"


def test_a_missing_journal_is_a_new_world(tmp_path: Path) -> None:
    """A list of requests left beside a journal that was deleted does not count."""
    core = CoreProcess(tmp_path / "journal.jsonl")
    with core:
        post(core.port, "g1")
    core.journal.unlink()
    with core:
        assert core.control.received() == []
        assert read_received(core.journal) == []


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        pytest.param({"amount": OPENING + 1}, 422, "B201", id="insufficient"),
        pytest.param({"to": "A999"}, 422, "B202", id="unknown-account"),
        pytest.param({"to": "A001"}, 422, "B203", id="same-account"),
        pytest.param({"amount": 3000.0}, 500, "E500", id="float"),
        pytest.param({"amount": True}, 500, "E500", id="bool"),
        pytest.param({"amount": 0}, 500, "E500", id="zero"),
        pytest.param({"amount": "3000"}, 500, "E500", id="text"),
        pytest.param({"from": None}, 500, "E500", id="no-from"),
        pytest.param({"currency": "yen"}, 500, "E500", id="currency"),
    ],
)
def test_a_refused_transfer_moves_nothing_and_is_known(
    core: CoreProcess, change: dict[str, object], status: int, code: str
) -> None:
    """A business refusal or a malformed body: no line, balances as before, the inquiry knows."""
    body = json.dumps({**TRANSFER, **change}).encode()
    answer = talk(core.port, post_bytes("g1", body=body))
    assert (answer.status, answer.code) == (status, code)
    assert read_journal(core.journal) == []
    assert set(core.control.accounts().values()) == {OPENING}
    assert [receipt.code for receipt in core.control.refused()] == [code]
    told = inquire(core.port, "g1")
    assert (told.status, told.headers["x-original-status"]) == (200, str(status))
    assert told.body == answer.body


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff"], ids=["empty", "cut", "list", "bytes"])
def test_a_body_that_is_no_transfer_is_e500(core: CoreProcess, body: bytes) -> None:
    """Anything but a JSON object is refused, received and not executed."""
    assert talk(core.port, post_bytes("g1", body=body)).code == "E500"
    assert core.control.counts() == {"g1": Counts(received=1, executed=0)}


def test_a_request_that_was_not_read_to_its_end_is_not_received(core: CoreProcess) -> None:
    """All but the last byte: nothing received, nothing executed."""
    assert talk(core.port, post_bytes("g1")[:-1], within_s=0.2).how is How.SILENT
    assert core.control.received() == []


def test_a_sender_that_waits_for_100_continue_gets_it(core: CoreProcess) -> None:
    """The head alone is answered with 100; a sender that leaves then has sent nothing."""
    head = post_bytes("g1", "Expect: 100-continue").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    assert talk(core.port, head, within_s=0.2).status == 100
    assert core.control.received() == []


def test_the_inquiry_gives_the_original_answer_byte_for_byte(core: CoreProcess) -> None:
    """PROCESSED with the GUID and the inquiry's id repeated, and the original status."""
    original = post(core.port, "g:1")
    told = inquire(core.port, "g%3A1", "q-77")
    assert (told.status, told.body) == (200, original.body)
    wanted = {
        "x-verdict": "PROCESSED",
        "x-guid": "g:1",
        "x-inquiry-id": "q-77",
        "x-original-status": "200",
        "content-type": original.headers["content-type"],
        "cache-control": "no-store",
    }
    assert wanted.items() <= told.headers.items()


def test_the_inquiry_says_not_found_in_its_own_word(core: CoreProcess) -> None:
    """404 with X-Verdict and a JSON body that bears no code."""
    told = inquire(core.port, "never", "q-1")
    assert (told.status, told.headers["x-verdict"]) == (404, "NOT_FOUND")
    assert (told.headers["x-guid"], told.headers["x-inquiry-id"]) == ("never", "q-1")
    assert json.loads(told.body) == {"verdict": "NOT_FOUND", "guid": "never"}


def test_without_a_guid_nothing_is_executed(core: CoreProcess) -> None:
    """An empty X-GUID is malformed: E500."""
    assert post(core.port, "").code == "E500"
    assert read_journal(core.journal) == []


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(get_bytes("/nothing"), 404, id="path"),
        pytest.param(get_bytes("/transactions"), 404, id="method"),
        pytest.param(get_bytes("/transactions/"), 404, id="no-guid"),
        pytest.param(b"this is no HTTP\r\n\r\n", 400, id="garbage"),
        pytest.param(post_bytes("g1", body=b"x" * (1024 * 1024 + 1)), 413, id="too-large"),
    ],
)
def test_a_wrong_request_gets_a_plain_refusal_without_a_verdict(
    core: CoreProcess, data: bytes, status: int
) -> None:
    """Wrong path, method, bytes or size: said so, and no word about any GUID."""
    seen = talk(core.port, data)
    # The rest of a body that is too large may meet a reset before the answer was read.
    assert seen.status == status or (status == 413 and seen.how is How.RESET)
    assert "x-verdict" not in seen.headers if seen.raw else True
    assert core.control.received() == []


def test_a_reset_starts_anew_and_drops_what_is_in_the_works(core: CoreProcess) -> None:
    """Accounts, files and faults as new; a late execution does not reach the new journal."""
    late = {"kind": "execute_late", "close_first": True}
    core.control.set_faults([{**late, "seconds": 0.2}])
    post(core.port, "before")
    assert core.control.health()["in_works"] == 1
    core.control.reset()
    assert core.control.health()["in_works"] == 0
    core.control.set_faults([{**late, "seconds": 0.3}])
    post(core.port, "after")
    assert until(lambda: read_journal(core.journal) != [])
    assert [execution.guid for execution in read_journal(core.journal)] == ["after"]
    assert core.control.accounts()["A001"] == OPENING - 3000


def test_the_control_answers_on_the_traffic_port_too(core: CoreProcess) -> None:
    """While it is open the paths are the same; the control port takes no traffic."""
    assert talk(core.port, get_bytes("/_core/healthz")).status == 200
    control_port = int(core.control.url.rpartition(":")[2])
    assert talk(control_port, post_bytes("g1")).status == 404
    assert core.control.received() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
def test_it_says_one_line_and_stops_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """A signal ends it within a second with exit code 0, even while requests hang."""
    journal = tmp_path / "journal.jsonl"
    command = [sys.executable, "-m", "local.core", "--journal", str(journal)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    line = child.stdout.readline()
    found = re.fullmatch(
        r"core: listening on 127\.0\.0\.1:(\d+), control on 127\.0\.0\.1:(\d+)\n", line
    )
    assert found is not None
    talk(int(found[1]), post_bytes("g1")[:-1], within_s=0.1)
    child.send_signal(number)
    assert child.communicate(timeout=1)[0] == ""
    assert child.returncode == 0


def test_a_taken_port_is_said_plainly(core: CoreProcess, tmp_path: Path) -> None:
    """Two cores on one port: the second says why and ends with 1."""
    with pytest.raises(ServerError, match=r"cannot start.*in use"):
        CoreProcess(tmp_path / "other.jsonl", port=core.port).start()
