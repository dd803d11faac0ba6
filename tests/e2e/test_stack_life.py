"""The local stack's life: where it listens, what it says when it cannot start, what it leaves."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from local.ports import LOOPBACK, free_ports, is_listening
from local.stack import Stack, StackConfig, StackError
from local.stack_process import Child, children_of
from local.stack_start import ROOT

pytestmark = pytest.mark.e2e

LOGS = ROOT / ".local" / "logs" / "e2e"
_LISTENS = "0A"
_LOOPBACK_HEX = "0100007F"
_WAIT_S = 30.0


def _config(name: str) -> StackConfig:
    return StackConfig(logs=LOGS / name)


def _alive(pids: Iterable[int]) -> list[int]:
    """Return those that still run; one that ended and waits for its parent does not."""
    wanted = ",".join(map(str, pids))
    shown = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-p", wanted],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,  # It is 1 when none of them is left.
    )
    rows = [line.split() for line in shown.stdout.splitlines()]
    return [int(pid) for pid, state in rows if not state.startswith("Z")]


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        time.sleep(0.05)


def _own_children() -> set[int]:
    """Return our processes, less the `ps` that lists them."""
    return {each.pid for each in children_of(os.getpid()) if not each.command.startswith("ps ")}


def _listening(pids: set[int]) -> set[tuple[str, str]]:
    """Return address and port, in hex, of every TCP socket that the processes listen on."""
    links = [
        link for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()
    ]
    inodes = {
        found.group(1) for each in links if (found := re.match(r"socket:\[(\d+)\]", _to(each)))
    }
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    found_rows = [row for row in rows if row[3] == _LISTENS and row[9] in inodes]
    return {(row[1].partition(":")[0], row[1].partition(":")[2]) for row in found_rows}


def _to(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads the kernel's list of sockets")
def test_everything_listens_on_the_loopback_interface_only(stack: Stack) -> None:
    """Nobody else on the network reaches the emulator, the core or a function."""
    stack.warm(1)
    pids = {stack.emulator.child.pid, stack.parts.core.pid, *stack.workers()}
    sockets = _listening(pids)
    assert {address for address, _port in sockets} == {_LOOPBACK_HEX}
    assert f"{stack.emulator.port:04X}" in {port for _address, port in sockets}
    assert len(sockets) == 3


def test_nothing_is_left_of_a_stack_that_ended(built: None) -> None:
    """Its processes, those that the emulator started, its ports and its folder are gone."""
    del built
    with Stack.running(_config("life")) as stack:
        stack.warm(2)
        workers = stack.workers()
        command = next(
            each.command for each in children_of(stack.emulator.child.pid) if each.pid == workers[0]
        )
        state = Path(command.split()[1]).parent.parent
        assert state.is_dir()
        pids = [stack.emulator.child.pid, stack.parts.core.pid, *workers]
        port = stack.emulator.port
    _until(lambda: _alive(pids) == [])
    assert not is_listening(port)
    assert not state.exists()


def test_nothing_is_left_of_a_stack_whose_deployment_failed(built: None) -> None:
    """A parameter out of its range stops the deploy; the error names the log and the reason."""
    del built
    before = _own_children()
    config = replace(_config("failed"), parameters={"CoreDeadlineS": "99"})
    with pytest.raises(StackError) as failed, Stack.running(config):
        pass
    assert "must be 1 to 24" in str(failed.value)
    assert str(config.logs / "deploy.log") in str(failed.value)
    assert _own_children() == before


def test_a_port_that_is_taken_is_named(built: None) -> None:
    """Nothing is started then."""
    del built
    with socket.create_server((LOOPBACK, 0)) as holder:
        port = holder.getsockname()[1]
        with (
            pytest.raises(StackError, match=f"port {port} .* is taken"),
            Stack.running(replace(_config("taken"), port=port)),
        ):
            pass


def test_a_missing_build_says_what_to_run(tmp_path: Path) -> None:
    """The stack deploys what was built, and builds nothing by itself."""
    config = replace(_config("unbuilt"), build=tmp_path)
    with pytest.raises(StackError, match="make build"), Stack.running(config):
        pass


@contextmanager
def _made_up(until: str) -> Iterator[subprocess.Popen[str]]:
    """Run `python -m local.stack` and go on when it has printed the word."""
    command = [sys.executable, "-m", "local.stack", "--logs", str(LOGS / "up")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        assert any(until in line for line in up.stdout), "it ended before"
        yield up
        if up.poll() is None:
            up.kill()


@pytest.mark.parametrize(
    ("number", "until", "code"),
    [
        (signal.SIGINT, "Ctrl-C stops everything", 0),
        (signal.SIGTERM, "Ctrl-C stops everything", 143),
        (signal.SIGINT, "sam deploy", 0),
        (signal.SIGTERM, "sam deploy", 143),
    ],
    ids=["ctrl-c", "term", "ctrl-c while it starts", "term while it starts"],
)
def test_a_signal_stops_all_that_make_up_started(
    built: None, number: signal.Signals, until: str, code: int
) -> None:
    """Ctrl-C is how a person ends it: exit code 0; either way no process is left."""
    del built
    with _made_up(until) as up:
        _until(lambda: len(children_of(up.pid)) >= 2)
        pids = [each.pid for each in children_of(up.pid)]
        up.send_signal(number)
        up.communicate(timeout=_WAIT_S)
        assert up.returncode == code
    assert _alive(pids) == []


def test_a_stopped_child_takes_its_own_children_along(tmp_path: Path) -> None:
    """Even those that ignore TERM and that the child did not end itself."""
    pid_file = tmp_path / "pid"
    script = f"(trap '' TERM; sleep 60) & echo $! > {pid_file}; wait"
    child = Child.start(
        "shell",
        ["/bin/sh", "-c", script],
        log=tmp_path / "log",
        env={"PATH": os.defpath},
        cwd=tmp_path,
    )
    _until(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
    child.stop(grace_s=0.5)
    grandchild = int(pid_file.read_text())
    _until(lambda: not _alive([grandchild]))
    assert not child.is_running()


def test_free_ports_are_distinct_and_below_those_of_outgoing_connections() -> None:
    """A stopped server's port must refuse: from the range for clients it may connect to itself."""
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < 32_768
