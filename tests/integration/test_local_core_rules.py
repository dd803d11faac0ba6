"""Whom a fault strikes, how an inquiry can fail, and what the control refuses."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.core_bank import Bank, Look, Outcome, Word
from local.core_client import CoreProcess, ServerError
from local.core_faults import FaultBook, Group, Kind, group_of
from local.core_rules import read_settings
from tests.integration.local_core_wire import TRANSFER, How, Seen, inquire, post, talk

BODY = json.dumps(TRANSFER).encode()


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


def book(*rules: dict[str, object]) -> FaultBook:
    """Make a book of rules as they would be put."""
    return FaultBook(read_settings(list(rules)))


def picks(faults: FaultBook, *requests: tuple[str, int]) -> list[str]:
    """Name the kind that each request meets, `-` for none."""
    rules = [faults.pick(Group.REQUEST, guid, attempt) for guid, attempt in requests]
    return [rule.kind if rule else "-" for rule in rules]


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        pytest.param({}, "xxxxx", id="all"),
        pytest.param({"guid": "a1"}, "xx---", id="guid"),
        pytest.param({"guid_prefix": "a"}, "xxx--", id="prefix"),
        pytest.param({"attempt": 1}, "x-xx-", id="attempt"),
        pytest.param({"times": 2}, "xx---", id="times"),
        pytest.param({"times_per_guid": 1}, "x-xx-", id="times-per-guid"),
        pytest.param({"guid_prefix": "b", "times": 1}, "---x-", id="prefix-and-times"),
        pytest.param({"rate": 0}, "-----", id="never"),
        pytest.param({"rate": 1}, "xxxxx", id="always"),
    ],
)
def test_a_rule_strikes_whom_it_names(rule: dict[str, object], met: str) -> None:
    """Five requests: a1 twice, a2, b1 twice; attempts 1 and 2."""
    requests = [("a1", 1), ("a1", 2), ("a2", 1), ("b1", 1), ("b1", 2)]
    seen = picks(book({"kind": "e500", **rule}), *requests)
    assert ["x" if kind == "e500" else "-" for kind in seen] == list(met)


def test_the_first_rule_that_strikes_wins_and_a_spent_one_gives_way() -> None:
    """Order is the list's; what is used up is passed over."""
    faults = book({"kind": "e500", "times": 1}, {"kind": "big"})
    assert picks(faults, ("a", 1), ("b", 1), ("c", 1)) == ["e500", "big", "big"]


def test_a_rate_strikes_the_same_requests_in_any_order() -> None:
    """Half of 400 GUIDs, the same ones forwards and backwards; another seed, others."""
    guids = [(f"g{n}", 1) for n in range(400)]

    def met(seed: int, *, backwards: bool = False) -> set[str]:
        faults = book({"kind": "e500", "rate": 0.5, "seed": seed})
        order = guids[::-1] if backwards else guids
        return {guid for guid, _ in order if picks(faults, (guid, 1)) == ["e500"]}

    assert 160 < len(met(1)) < 240
    assert met(1) == met(1, backwards=True)
    assert met(1) != met(2)


def test_an_attempt_is_counted_by_the_core_when_nobody_says_it(core: CoreProcess) -> None:
    """Without X-Attempt the second delivery is attempt 2, so the rules fit any relay."""
    core.control.set_faults([{"kind": "e500", "attempt": 1}])
    assert [post(core.port, "g1").code for _ in range(2)] == ["E500", "0000"]
    assert [execution.attempt for execution in core.control.journal()] == [2]


INQUIRY_CASES = {
    Kind.INQUIRY_403: (403, None),
    Kind.INQUIRY_500: (500, None),
    Kind.INQUIRY_PROXY_404: (404, None),
    Kind.INQUIRY_GARBAGE: (0, None),
    Kind.INQUIRY_HANGS: (0, None),
    Kind.INQUIRY_FORGETS: (404, "NOT_FOUND"),
    Kind.INQUIRY_STALE: (404, "NOT_FOUND"),
    Kind.INQUIRY_PROCESSING: (202, "PROCESSING"),
    Kind.INQUIRY_CACHED: (200, "PROCESSED"),
    Kind.INQUIRY_OTHER_GUID: (200, "PROCESSED"),
}


@pytest.mark.parametrize("kind", [kind for kind in Kind if group_of(kind) is Group.INQUIRY])
def test_an_inquiry_fails_as_told(core: CoreProcess, kind: Kind) -> None:
    """An executed GUID, asked about through each fault; then the truth again."""
    status, word = INQUIRY_CASES[kind]
    post(core.port, "g1")
    core.control.set_faults([{"kind": kind, "guid": "g1", "times": 1}])
    seen = inquire(core.port, "g1", within_s=0.3)
    assert seen.status == status
    assert (seen.headers.get("x-verdict") if seen.status else None) == word
    assert (seen.how is How.SILENT) == (kind is Kind.INQUIRY_HANGS)
    told = inquire(core.port, "g1")
    assert (told.headers["x-verdict"], told.headers["x-guid"]) == ("PROCESSED", "g1")
    assert len(core.control.journal()) == 1


def test_a_cached_inquiry_repeats_the_old_word_and_the_old_id(core: CoreProcess) -> None:
    """A NOT_FOUND from before the execution comes again, with the id of then."""
    core.control.set_faults([{"kind": "inquiry_cached"}])
    first = inquire(core.port, "g1", "q-1")
    post(core.port, "g1")
    again = inquire(core.port, "g1", "q-2")
    assert again == first
    assert (again.headers["x-verdict"], again.headers["x-inquiry-id"]) == ("NOT_FOUND", "q-1")


def test_a_verdict_about_another_guid_shows_it(core: CoreProcess) -> None:
    """The echo differs from what was asked."""
    core.control.set_faults([{"kind": "inquiry_other_guid"}])
    assert inquire(core.port, "g1").headers["x-guid"] == "g1-other"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        """Tell the time."""
        return self.ms


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands."""
    return Clock()


@pytest.fixture
def bank(tmp_path: Path, clock: Clock) -> Bank:
    """Give a bank by that clock."""
    return Bank(tmp_path / "journal.jsonl", accounts=2, balance=10_000, now_ms=clock)


def said(found: Outcome | Word) -> str:
    """Give the code or the word."""
    return found.code if isinstance(found, Outcome) else found


def test_a_stale_replica_shows_the_past(bank: Bank, clock: Clock) -> None:
    """5 s behind: nothing, then in the works, then executed."""
    entry = bank.receive("g1", 1, "")
    clock.ms += 3_000
    bank.execute(entry, BODY)
    seen = []
    for _ in range(3):
        seen.append(said(bank.look("g1", Look(lag_ms=5_000))))
        clock.ms += 2_500
    assert seen == ["NOT_FOUND", "PROCESSING", "0000"]


def test_a_forgetful_core_knows_only_what_is_young(bank: Bank, clock: Clock) -> None:
    """A memory of 10 s: known at 9.999 s, forgotten at 10 s."""
    bank.execute(bank.receive("g1", 1, ""), BODY)
    look = Look(memory_ms=10_000)
    clock.ms += 9_999
    assert said(bank.look("g1", look)) == "0000"
    clock.ms += 1
    assert said(bank.look("g1", look)) == "NOT_FOUND"


def test_a_core_without_refusals_does_not_know_them(bank: Bank) -> None:
    """`knows_refusals: false`: a refused GUID is NOT_FOUND."""
    bank.refuse(bank.receive("g1", 1, ""), "B201", "")
    assert said(bank.look("g1", Look())) == "B201"
    assert said(bank.look("g1", Look(knows_refusals=False))) == "NOT_FOUND"


def test_an_execution_outranks_a_later_refusal(bank: Bank) -> None:
    """Executed, then refused under the same GUID: the inquiry says executed."""
    bank.execute(bank.receive("g1", 1, ""), BODY)
    bank.refuse(bank.receive("g1", 2, ""), "E500", "")
    assert said(bank.look("g1", Look())) == "0000"


@pytest.mark.parametrize(
    ("faults", "named"),
    [
        pytest.param("nonsense", "JSON list", id="text"),
        pytest.param({"rules": [], "speed": 9}, "unknown switch 'speed'", id="switch"),
        pytest.param({"honour_not_after": "yes"}, "'honour_not_after' must be", id="switch-value"),
        pytest.param([1], "rule 0: must be a JSON object", id="no-object"),
        pytest.param([{"kind": "e500"}, {"kind": "explode"}], "rule 1: unknown kind", id="kind"),
        pytest.param([{"guid": "g1"}], "unknown kind None", id="no-kind"),
        pytest.param([{"kind": ["e500"]}], "unknown kind", id="kind-list"),
        pytest.param([{"kind": "refuse", "guid": "g1"}], "'guid' means nothing", id="refuse-guid"),
        pytest.param([{"kind": "refuse", "times": 1}], "'times' means nothing", id="refuse-times"),
        pytest.param([{"kind": "inquiry_403", "attempt": 1}], "means nothing", id="inquiry"),
        pytest.param([{"kind": "slow", "second": 1}], "'second' means nothing", id="spelling"),
        pytest.param([{"kind": "slow", "seconds": "1"}], "'seconds' must be", id="seconds"),
        pytest.param(
            [{"kind": "slow", "seconds": None}], "'seconds' must be a", id="slow-for-ever"
        ),
        pytest.param([{"kind": "e500", "rate": 1.5}], "'rate' must be", id="rate"),
        pytest.param([{"kind": "e500", "times": True}], "'times' must be", id="times"),
        pytest.param([{"kind": "gateway_page", "status": 500}], "(502, 503, 504)", id="status"),
        pytest.param([{"kind": "big", "bytes": 10}], "'bytes' must be", id="bytes"),
        pytest.param(
            [{"kind": "hang_before", "executes": True}], "'seconds' must be a", id="never"
        ),
    ],
)
def test_a_bad_rule_is_refused_by_name_and_changes_nothing(
    core: CoreProcess, faults: object, named: str
) -> None:
    """400 says what is wrong; the rules of before stay in force."""
    core.control.set_faults([{"kind": "e500", "guid": "kept"}])
    with pytest.raises(ServerError) as caught:
        core.control.put(faults)
    assert "400" in str(caught.value)
    assert named in str(caught.value)
    assert [rule["guid"] for rule in core.control.faults()["rules"]] == ["kept"]


def test_a_refusal_of_the_control_lists_every_kind(core: CoreProcess) -> None:
    """Whoever mistyped sees what there is, with the options and their defaults."""
    head = b"PUT /_core/faults HTTP/1.1\r\nHost: core\r\nContent-Length: 1\r\n\r\n{"
    seen = talk(core.port, head)
    assert seen.status == 400
    assert json.loads(seen.body)["kinds"].keys() == set(Kind)
    assert json.loads(seen.body)["kinds"]["big"]["options"] == {"bytes": 500_000}


@pytest.mark.parametrize(
    ("line", "status", "named"),
    [
        pytest.param("GET /_core/nothing", 404, "/_core/faults", id="path"),
        pytest.param("GET /_core/reset", 405, "POST", id="reset"),
        pytest.param("POST /_core/faults", 405, "GET, PUT", id="faults"),
    ],
)
def test_a_wrong_control_path_or_method_says_the_right_ones(
    core: CoreProcess, line: str, status: int, named: str
) -> None:
    """404 lists the paths, 405 the methods."""
    seen: Seen = talk(core.port, f"{line} HTTP/1.1\r\nHost: core\r\n\r\n".encode())
    assert seen.status == status
    assert named in seen.body.decode()


def test_rules_are_shown_as_they_could_be_put_again(core: CoreProcess) -> None:
    """What GET shows, without the counts, is accepted by PUT and shown the same."""
    core.control.set_faults([{"kind": kind} for kind in Kind], honour_not_after=True, memory_s=9.5)
    shown = core.control.faults()
    rules = [{k: v for k, v in rule.items() if k != "applied"} for rule in shown["rules"]]
    core.control.put({**shown, "rules": rules})
    assert core.control.faults() == shown
