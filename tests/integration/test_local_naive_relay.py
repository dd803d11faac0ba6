"""The negative control is really wrong: without a ledger the core executes twice."""

from collections.abc import Iterator

import httpx
import pytest

from local.core_client import CoreProcess, Counts, NaiveRelayProcess, ServerError
from tests.integration.local_core_wire import TRANSFER


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoreProcess]:
    """Run one core for the module."""
    with CoreProcess(tmp_path_factory.mktemp("core") / "journal.jsonl") as running:
        yield running


@pytest.fixture(scope="module")
def relay(core: CoreProcess) -> Iterator[NaiveRelayProcess]:
    """Run one naive relay before it, with a short deadline."""
    with NaiveRelayProcess(core.url, deadline_s=0.3) as running:
        yield running


def transact(relay: NaiveRelayProcess, key: str | None = "g1") -> httpx.Response:
    """Post the usual transfer as a channel does."""
    headers = {} if key is None else {"Idempotency-Key": key}
    url = f"{relay.url}/transactions"
    return httpx.post(url, json=TRANSFER, headers=headers, timeout=5, trust_env=False)


@pytest.mark.parametrize(
    ("rules", "status", "executed"),
    [
        pytest.param([], 200, 1, id="all-well"),
        pytest.param([{"kind": "execute_then_close", "attempt": 1}], 200, 2, id="lost-answer"),
        pytest.param([{"kind": "execute_then_hang"}], 504, 3, id="time-out"),
        pytest.param([{"kind": "execute_then_reset", "times": 1}], 200, 2, id="reset"),
        pytest.param([{"kind": "refuse"}], 502, 0, id="refused"),
        pytest.param([{"kind": "b2xx"}], 422, 0, id="refusal"),
        pytest.param([{"kind": "redirect"}], 307, 1, id="redirect"),
    ],
)
def test_it_sends_again_whatever_became_of_the_first(
    core: CoreProcess,
    relay: NaiveRelayProcess,
    rules: list[dict[str, object]],
    status: int,
    executed: int,
) -> None:
    """Every time-out and broken connection after the execution costs the customer again."""
    core.control.reset()
    core.control.set_faults(rules)
    assert transact(relay).status_code == status
    assert len(core.control.journal("g1")) == executed


def test_a_resend_is_sent_again(core: CoreProcess, relay: NaiveRelayProcess) -> None:
    """Without a ledger a channel's resend is a second debit, with another reference."""
    core.control.reset()
    answers = {transact(relay).content for _ in range(2)}
    assert len(answers) == 2
    assert core.control.counts() == {"g1": Counts(received=2, executed=2)}


def test_the_answer_is_passed_on_as_it_is(core: CoreProcess, relay: NaiveRelayProcess) -> None:
    """Bytes, type and code of a telegram in Shift_JIS."""
    core.control.reset()
    core.control.set_faults([{"kind": "shift_jis"}])
    answer = transact(relay)
    assert answer.content.endswith(b" \0")
    assert answer.headers["content-type"] == "text/plain; charset=Shift_JIS"
    assert answer.headers["x-response-code"] == "0000"


def test_a_request_without_a_key_is_refused(core: CoreProcess, relay: NaiveRelayProcess) -> None:
    """400, and the core is not called."""
    core.control.reset()
    assert transact(relay, None).status_code == 400
    assert core.control.received() == []


def test_a_taken_port_is_said_plainly(core: CoreProcess) -> None:
    """A port that is in use ends it with the reason."""
    with pytest.raises(ServerError, match=r"cannot start.*in use"):
        NaiveRelayProcess(core.url, port=core.port).start()
