"""What a person sees and switches on the local stack, by the command line alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.stack import Stack
from tests.e2e.test_cli import CommandLine, relayhub

__all__ = ["relayhub"]

pytestmark = pytest.mark.e2e

WHY = ("--operator", "alice", "--reason", "a planned stop")
BODY = b'{"from":"A001","to":"A002","amount":717,"currency":"JPY"}'
# The switches are kept for 2 s and a claim may take as long; the rest is for a busy machine.
_NOTICED_S = 15
_DRAINED_S = 60


def until(is_so: Callable[[], bool], within_s: float) -> None:
    """Wait until it is so."""
    ends = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.5)


def test_a_core_is_closed_looked_at_and_opened_and_what_waited_is_sent_once(
    stack: Stack, core: CoreControl, atm: Channel, relayhub: CommandLine
) -> None:
    """Nothing is in doubt afterwards; who did it is in the operators' log and told by `core`."""
    assert relayhub.json("core", "close", *WHY) == {"core": "closed"}
    try:
        assert relayhub.json("core", "status")["closed"]["by"] == "alice"
        until(lambda: atm.post(f"op-{time.time_ns()}", BODY).code == "E902", _NOTICED_S)
        assert atm.post("op-1", BODY).code == "E902"
        shown = relayhub.json("show", "op-1")
        assert (shown["row"]["state"], shown["resend"]["code"]) == ("FAILED", "E902")
        assert "the core is closed: it waits" in shown["next"]
        assert "op-1" in {each["guid"] for each in relayhub.json("list", "--limit", "500")["rows"]}
        found = relayhub.json("find", "--amount", "717.00", "--currency", "JPY")
        assert "op-1" in {each["guid"] for each in found["rows"]}
        assert found["scan"]["complete"]
        assert core.journal("op-1") == []
    finally:
        opened = relayhub.json("core", "open", *WHY)
    assert opened["core"] == "open"

    def has_drained() -> bool:
        """Sweep again: what failed right before is due a little later."""
        relayhub.run("reprocess")
        return bool((stack.ledger_row("op-1") or {})["state"] == "DONE")

    until(has_drained, _DRAINED_S)
    assert len(core.journal("op-1")) == 1
    stats = relayhub.json("stats", "--all")
    assert stats["scan"]["read_units"] > 0
    assert any(each["state"] == "DONE" for each in stats["rows"])


def test_a_person_puts_a_row_right_on_record(
    core: CoreControl, stack: Stack, atm: Channel, relayhub: CommandLine
) -> None:
    """Held and closed over that hold; the row's history and the log have both."""
    core.set_faults([{"kind": "refuse"}])
    assert atm.post("op-2", BODY, headers={"Delivery": "interactive"}).code == "E902"
    relayhub.json("hold", "op-2", *WHY)
    assert atm.status("op-2").code == "E901"
    assert relayhub.run("close", "op-2", *WHY).returncode == 2
    closed = relayhub.json("close", "op-2", "--over-hold", "operator", *WHY)
    assert closed["row"]["code"] == "E908"
    row = stack.ledger_row("op-2") or {}
    assert [each["by"] for each in row["history"][-2:]] == ["operator alice"] * 2
    group = stack.name_of("OperatorLogGroup")
    lines = stack.operator.lines_of(group)
    assert sum("op-2" in line and '"line": "intent"' in line for line in lines) == 3
    assert not any(each in line for each in ("amount", "JPY", "A001") for line in lines)
