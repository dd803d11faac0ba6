"""Every fault of the local core does on the socket what its name says."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from local.core import read_journal
from local.core_client import CoreProcess, Counts
from local.core_faults import Group, Kind, group_of
from tests.integration.local_core_wire import (
    How,
    Seen,
    inquire,
    post,
    post_bytes,
    send_and_reset,
    until,
)

LATER = "2999-01-01T00:00:00.000Z"
EARLIER = "2020-01-01T00:00:00.000Z"


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


def executed(core: CoreProcess, guid: str = "g1") -> int:
    """Count a GUID in the journal file itself."""
    return [execution.guid for execution in read_journal(core.journal)].count(guid)


@dataclass(frozen=True)
class Case:
    """A fault, what the socket shows at once, and what the journal says then."""

    kind: Kind
    options: dict[str, object] = field(default_factory=dict)
    how: How = How.CLOSED
    status: int = 200
    code: str = ""
    count: int = 1


CASES = [
    Case(Kind.HANG_BEFORE, how=How.SILENT, status=0, count=0),
    Case(Kind.HANG_BEFORE, {"seconds": 0.1}, status=0, count=0),
    Case(Kind.HANG_BEFORE, {"seconds": 0.1, "executes": True}, code="0000"),
    Case(Kind.EXECUTE_THEN_HANG, how=How.SILENT, status=0),
    Case(Kind.EXECUTE_THEN_HANG, {"seconds": 0.1}, status=0),
    Case(Kind.EXECUTE_THEN_CLOSE, status=0),
    Case(Kind.EXECUTE_THEN_RESET, how=How.RESET, status=0),
    Case(Kind.EXECUTE_LATE, {"seconds": 0.1}, code="0000"),
    Case(Kind.EXECUTE_LATE, {"close_first": True}, status=0, count=0),
    Case(Kind.SLOW, {"seconds": 0.1}, code="0000"),
    Case(Kind.SLOW, how=How.SILENT, status=0),
    Case(Kind.GATEWAY_PAGE, status=502, count=0),
    Case(Kind.GATEWAY_PAGE, {"status": 503, "executes": True}, status=503),
    Case(Kind.GATEWAY_PAGE, {"status": 504}, status=504, count=0),
    Case(Kind.GARBAGE, status=0),
    Case(Kind.GARBAGE, {"executes": False}, status=0, count=0),
    Case(Kind.UNKNOWN_CODE, code="Z999"),
    Case(Kind.UNKNOWN_CODE, {"code": "0001", "executes": False}, code="0001", count=0),
    Case(Kind.TWO_CODES, code="0000"),
    Case(Kind.B2XX, status=422, code="B201", count=0),
    Case(Kind.B2XX, {"code": "B277"}, status=422, code="B277", count=0),
    Case(Kind.E500, status=500, code="E500", count=0),
    Case(Kind.SHIFT_JIS),
    Case(Kind.BIG, code="0000"),
    Case(Kind.BIG, {"bytes": 2_000_000}, code="0000"),
    Case(Kind.REDIRECT, status=307),
    Case(Kind.REDIRECT, {"status": 303, "executes": False}, status=303, count=0),
    Case(Kind.GZIP),
    Case(Kind.TRUNCATED),
    Case(Kind.CHUNKED),
    Case(Kind.NO_LENGTH, code="0000"),
    Case(Kind.DRIP, {"seconds": 0}, code="0000"),
    Case(Kind.DRIP, {"seconds": 0.02}, how=How.SILENT),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.options or ''}")
def test_a_fault_shows_on_the_socket_and_in_the_journal(core: CoreProcess, case: Case) -> None:
    """The answer, its code, how it ended, and how often the money moved."""
    core.control.set_faults([{"kind": case.kind, "guid": "g1", **case.options}])
    seen = post(core.port, "g1", within_s=0.7)
    assert (seen.how, seen.status) == (case.how, case.status)
    if case.how is not How.SILENT:
        assert seen.code == case.code
    assert executed(core) == case.count
    assert len(core.control.received()) == 1
    assert core.control.faults()["rules"][0]["applied"] == 1
    # The rule names g1: nobody else is struck.
    assert post(core.port, "g2").code == "0000"


def test_every_fault_of_a_request_has_a_case() -> None:
    """A kind without a case here would be a promise that nobody checks."""
    told = {case.kind for case in CASES}
    assert told == {kind for kind in Kind if group_of(kind) is Group.REQUEST}


def struck(core: CoreProcess, kind: Kind, **options: object) -> Seen:
    """Set one fault and ask once."""
    core.control.set_faults([{"kind": kind, **options}])
    return post(core.port, "g1")


def test_the_shift_jis_answer_is_a_telegram(core: CoreProcess) -> None:
    """Text in Shift_JIS with trailing spaces and a NUL; the code is in the header."""
    seen = struck(core, Kind.SHIFT_JIS)
    assert seen.headers["content-type"] == "text/plain; charset=Shift_JIS"
    assert seen.headers["x-response-code"] == "0000"
    assert seen.body.endswith(b"  \0")
    assert seen.body.decode("shift_jis").startswith("振込完了 g1 C00000001")
    told = inquire(core.port, "g1")
    assert (told.body, told.headers["x-response-code"]) == (seen.body, "0000")
    assert told.headers["content-type"] == seen.headers["content-type"]


@pytest.mark.parametrize("size", [500_000, 1024, 3_999_999])
def test_the_big_answer_has_the_size_asked_for(core: CoreProcess, size: int) -> None:
    """JSON of exactly so many bytes; the inquiry gives the same."""
    seen = struck(core, Kind.BIG, bytes=size)
    assert (len(seen.body), seen.is_whole, seen.code) == (size, True, "0000")
    assert inquire(core.port, "g1").body == seen.body


def test_the_gzip_answer_is_marked_and_packed(core: CoreProcess) -> None:
    """Content-Encoding: gzip, although identity was asked for."""
    seen = struck(core, Kind.GZIP)
    assert seen.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(seen.body))["code"] == "0000"


def test_the_truncated_answer_is_shorter_than_promised(core: CoreProcess) -> None:
    """The promised length is the whole one; about half of the body comes."""
    seen = struck(core, Kind.TRUNCATED)
    promised = int(seen.headers["content-length"])
    assert 0 < len(seen.body) < promised
    assert len(inquire(core.port, "g1").body) == promised


def test_the_chunked_answer_has_its_end(core: CoreProcess) -> None:
    """Chunks with the last, empty one: a complete answer."""
    seen = struck(core, Kind.CHUNKED)
    assert seen.headers["transfer-encoding"] == "chunked"
    assert seen.body.endswith(b"\r\n0\r\n\r\n")


def test_an_answer_without_a_length_says_none(core: CoreProcess) -> None:
    """Neither length nor chunks: only the close shows the end."""
    seen = struck(core, Kind.NO_LENGTH)
    assert not {"content-length", "transfer-encoding"} & seen.headers.keys()


def test_two_codes_differ(core: CoreProcess) -> None:
    """The header says a refusal, the body success."""
    seen = struck(core, Kind.TWO_CODES)
    assert (seen.headers["x-response-code"], seen.code) == ("B201", "0000")


def test_a_redirect_points_back_to_the_same_address(core: CoreProcess) -> None:
    """A client that follows would execute again."""
    assert struck(core, Kind.REDIRECT).headers["location"] == "/transactions"


def test_a_refused_port_refuses_and_comes_back(core: CoreProcess) -> None:
    """Connection refused, the control still answers, and clearing opens the same port."""
    assert struck(core, Kind.REFUSE).how is How.REFUSED
    assert core.control.health()["door"] == "refused"
    core.control.clear()
    assert post(core.port, "g1").code == "0000"
    assert core.control.counts() == {"g1": Counts(received=1, executed=1)}


def test_a_refused_port_opens_by_itself_after_its_seconds(core: CoreProcess) -> None:
    """`seconds` ends the refusal without anybody clearing it."""
    assert struck(core, Kind.REFUSE, seconds=0.2).how is How.REFUSED
    assert until(lambda: post(core.port, "g1").how is not How.REFUSED)
    assert executed(core) == 1


def test_a_connection_is_reset_as_often_as_asked(core: CoreProcess) -> None:
    """`times: 2`: two resets with nothing received, then all is well."""
    core.control.set_faults([{"kind": "reset_on_connect", "times": 2}])
    seen = [post(core.port, "g1").how for _ in range(3)]
    assert seen == [How.RESET, How.RESET, How.CLOSED]
    assert core.control.counts() == {"g1": Counts(received=1, executed=1)}


@pytest.mark.parametrize("ending", ["stays", "closed", "reset"])
def test_the_backlog_takes_the_bytes_and_they_are_executed_later(
    core: CoreProcess, ending: str
) -> None:
    """Nothing is accepted, the sender leaves however it likes; accepting again executes."""
    core.control.set_faults([{"kind": "accept_nothing"}])
    if ending == "reset":
        send_and_reset(core.port, post_bytes("g1"))
    else:
        assert post(core.port, "g1", within_s=0.2) == Seen(How.SILENT)
    assert core.control.received() == []
    core.control.clear()
    assert until(lambda: executed(core) == 1)


def test_accepting_resumes_by_itself_after_its_seconds(core: CoreProcess) -> None:
    """A sender that waits long enough gets its answer."""
    core.control.set_faults([{"kind": "accept_nothing", "seconds": 0.3}])
    assert post(core.port, "g1", within_s=0.1).how is How.SILENT
    assert post(core.port, "g2").code == "0000"
    assert executed(core, "g1") == executed(core, "g2") == 1


@pytest.mark.parametrize("kind", [Kind.EXECUTE_LATE, Kind.HANG_BEFORE])
def test_a_late_execution_does_not_care_who_left(core: CoreProcess, kind: Kind) -> None:
    """The sender resets; PROCESSING meanwhile; then the money moves all the same."""
    options = {"executes": True} if kind is Kind.HANG_BEFORE else {}
    core.control.set_faults([{"kind": kind, "seconds": 0.4, **options}])
    send_and_reset(core.port, post_bytes("g1"))
    assert until(lambda: len(core.control.received()) == 1)
    told = inquire(core.port, "g1")
    assert (told.status, told.headers["x-verdict"]) == (202, "PROCESSING")
    assert executed(core) == 0
    assert until(lambda: executed(core) == 1)
    assert inquire(core.port, "g1").headers["x-verdict"] == "PROCESSED"


def test_a_late_execution_can_be_hidden_from_the_inquiry(core: CoreProcess) -> None:
    """`seen: false`: NOT_FOUND, and executed afterwards: the trap of an early verdict."""
    core.control.set_faults(
        [{"kind": "execute_late", "seconds": 0.3, "close_first": True, "seen": False}]
    )
    assert post(core.port, "g1") == Seen(How.CLOSED)
    assert inquire(core.port, "g1").headers["x-verdict"] == "NOT_FOUND"
    assert until(lambda: executed(core) == 1)
    assert inquire(core.port, "g1").headers["x-verdict"] == "PROCESSED"


def test_a_hang_that_never_executes_ends_when_the_sender_leaves(core: CoreProcess) -> None:
    """PROCESSING while it hangs, NOT_FOUND when the sender has gone."""
    core.control.set_faults([{"kind": "hang_before", "guid": "g1"}])
    assert post(core.port, "g1", within_s=0.2).how is How.SILENT
    assert until(lambda: core.control.health()["in_works"] == 0)
    assert inquire(core.port, "g1").headers["x-verdict"] == "NOT_FOUND"
    assert executed(core) == 0


@pytest.mark.parametrize(
    ("honours", "header", "count", "code"),
    [
        pytest.param(True, EARLIER, 0, "E500", id="honoured-passed"),
        pytest.param(True, LATER, 1, "0000", id="honoured-in-time"),
        pytest.param(True, "soon", 0, "E500", id="honoured-unreadable"),
        pytest.param(False, EARLIER, 1, "0000", id="not-honoured"),
    ],
)
def test_not_after_binds_a_core_that_honours_it(
    core: CoreProcess, *, honours: bool, header: str, count: int, code: str
) -> None:
    """Only the switch makes the core refuse to start late."""
    core.control.set_faults(honour_not_after=honours)
    assert post(core.port, "g1", f"X-Not-After: {header}").code == code
    assert executed(core) == count


def test_not_after_is_judged_at_the_start_of_the_execution(core: CoreProcess) -> None:
    """A request that came in time and waited too long inside is not started."""
    core.control.set_faults([{"kind": "execute_late", "seconds": 0.8}], honour_not_after=True)
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    seen = post(core.port, "g1", f"X-Not-After: {soon.isoformat(timespec='milliseconds')}")
    assert (seen.code, executed(core)) == ("E500", 0)
