"""Ports on the loopback interface: free ones to start on, and whether something listens there."""

import random
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

LOOPBACK: Final = "127.0.0.1"

# Below the range that the kernel takes outgoing ports from (32768 up on Linux). Inside it, a port
# that looked free can become somebody's client port before the server binds it, and a connection
# to a stopped server may connect to itself, which would spoil every "refused" fault.
_PORTS: Final = range(20_000, 32_000)
_TRIES_MAX: Final = 200
_POLL_S: Final = 0.02


class PortError(Exception):
    """No port is to be had, or nothing came up on one."""


def free_ports(count: int) -> tuple[int, ...]:
    """Return distinct ports that nothing on the loopback interface has bound."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(_PORTS, _TRIES_MAX):
            if len(found) == count:
                break
            holder = held.enter_context(socket.socket())
            if _can_bind(holder, port):
                found.append(port)
    if len(found) < count:
        raise PortError(f"found {len(found)} free ports on {LOOPBACK}, {count} are needed")
    return tuple(found)


def _can_bind(holder: socket.socket, port: int) -> bool:
    try:
        holder.bind((LOOPBACK, port))
    except OSError:
        return False
    return True


def is_listening(port: int) -> bool:
    """Say whether something accepts connections on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def wait_until_listening(port: int, *, alive: Callable[[], bool], within_s: float) -> None:
    """Return when the port accepts; raise PortError when the server died or the time is over."""
    deadline = time.monotonic() + within_s
    while not is_listening(port):
        if not alive():
            raise PortError(f"the server for port {port} ended while it was starting")
        if time.monotonic() > deadline:
            raise PortError(f"nothing listens on port {port} after {within_s:.0f} s")
        time.sleep(_POLL_S)
