"""The prepared incident: what two channels sent, what the core did, and how it stands then.

The core executes and is silent, its port is closed, a relay is killed in mid call, and the core's
inquiry is out of order, so that nothing comes right by itself.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from local.channels import Reply
from local.core_client import CoreControl
from local.incident_desk import IncidentError
from local.rounds import RESOLVER
from local.stack import SHORT_LIMITS, Stack

# The 20 silent calls must not close the core, or nothing would be refused; the refused ones do.
PARAMETERS: Final = {
    **SHORT_LIMITS,
    "CircuitAfter": "25",
    "FourEyes": "true",
    # An interactive request is still there when a person comes to it.
    "ValidInteractiveS": "900",
}
CHANNELS: Final = ("atm", "app")
CURRENCIES: Final = ("JPY", "USD")
PAYER: Final = {"name": "Yamada Hanako", "account": "account-4711-0815"}
# The emulator looks at no dimension of a metric, so that others' alarms are on there as well.
CALLED_BY: Final = ("RelayCircuitAlarm", "UnknownAgeAlarm")
_SILENT: Final = 20
_REFUSED: Final = 30
_ACCOUNTS: Final = 10
_CLIENTS: Final = 10
# Six digits that are no age of a row in ms, and no part of a time.
_AMOUNT_FIRST: Final = 210_013
_AMOUNT_STEP: Final = 137
_RECEIVED_S: Final = 15.0
_DEAD_S: Final = 40.0
_POLL_S: Final = 0.05


@dataclass(frozen=True)
class Transfer:
    """One request of a channel; the amount is in the currency's minor unit."""

    number: int
    channel: str
    currency: str
    delivery: str = "deferred"

    @property
    def guid(self) -> str:
        """The channel's own counter makes it."""
        return f"{self.channel}-{self.number:04d}"

    @property
    def amount(self) -> int:
        """Each one's own."""
        return _AMOUNT_FIRST + _AMOUNT_STEP * self.number

    @property
    def reference(self) -> str:
        """What the channel calls it."""
        return f"slip-{7000 + self.number}"

    @property
    def body(self) -> bytes:
        """What is sent: from one account to the next, so that every one has enough."""
        source, target = self.number % _ACCOUNTS + 1, (self.number + 1) % _ACCOUNTS + 1
        return json.dumps(
            {
                "from": f"A{source:03d}",
                "to": f"A{target:03d}",
                "amount": self.amount,
                "currency": self.currency,
                "reference": self.reference,
                "payer": PAYER,
            }
        ).encode()


def _transfers(first: int, count: int) -> tuple[Transfer, ...]:
    return tuple(
        Transfer(number, CHANNELS[number % 2], CURRENCIES[number // 2 % 2])
        for number in range(first, first + count)
    )


KILLED: Final = Transfer(1, "atm", "JPY")
SILENT: Final = _transfers(2, _SILENT)
# The last one's customer waited at the machine, and has gone.
REFUSED: Final = (
    *_transfers(2 + _SILENT, _REFUSED - 1),
    Transfer(1 + _SILENT + _REFUSED, "app", "JPY", "interactive"),
)
ALL: Final = (KILLED, *SILENT, *REFUSED)
# What the core executed, though no channel was told so.
EXECUTED: Final = (KILLED, *SILENT)


@dataclass(frozen=True)
class Incident:
    """How it stands when a person is called: the answers, the balances before, the alarms."""

    begun_ms: int
    opening: Mapping[str, int]
    told: Mapping[str, str | None]  # Code by GUID; None: an answer without one.
    sent_ms: Mapping[str, tuple[int, int]]  # By GUID: when it was sent, and answered.
    alarms: tuple[str, ...]


def prepare(stack: Stack, core: CoreControl, on_step: Callable[[str], None]) -> Incident:
    """Make it happen; raises IncidentError when the core or the hub did something else."""
    begun_ms = _now_ms()
    opening = core.accounts()
    sender = _Sender(stack)
    on_step("a relay is killed while its request is with the core")
    core.set_faults([{"kind": "execute_then_hang", "guid": KILLED.guid}])
    _kill(stack, core, sender)
    on_step(f"the core executes {len(SILENT)} and is silent")
    core.set_faults([{"kind": "execute_then_hang"}])
    sender.send(SILENT)
    on_step(f"the core's port is closed for {len(REFUSED)}")
    core.set_faults([{"kind": "refuse"}])
    sender.send(REFUSED)
    on_step("the port is open again, the inquiry out of order")
    core.set_faults([{"kind": "inquiry_500"}])
    _until_given_up(stack)
    alarms = _alarms(stack, begun_ms)
    return Incident(begun_ms, opening, sender.told, sender.sent_ms, alarms)


class _Sender:
    """Both channels' clients, each request once; it remembers the answers."""

    def __init__(self, stack: Stack) -> None:
        self.told: dict[str, str | None] = {}
        self.sent_ms: dict[str, tuple[int, int]] = {}
        self._channels = {"atm": stack.atm, "app": stack.app}

    def send(self, transfers: Sequence[Transfer]) -> None:
        """Send them from some clients at once."""
        with ThreadPoolExecutor(_CLIENTS) as pool:
            list(pool.map(self.send_one, transfers))

    def send_one(self, transfer: Transfer) -> Reply:
        """Send one and wait for its answer."""
        sent_ms = _now_ms()
        headers = {"Delivery": transfer.delivery}
        channel = self._channels[transfer.channel]
        reply = channel.post(transfer.guid, transfer.body, headers=headers)
        self.told[transfer.guid] = reply.code
        self.sent_ms[transfer.guid] = (sent_ms, _now_ms())
        return reply


def _kill(stack: Stack, core: CoreControl, sender: _Sender) -> None:
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(sender.send_one, KILLED)
        _until(
            lambda: bool(core.received(KILLED.guid)), _RECEIVED_S, "the core received no request"
        )
        stack.kill_worker()
        call.result()


def _until_given_up(stack: Stack) -> None:
    """Let the resolver take over from the relay that was killed, as its schedule does."""

    def is_given_up() -> bool:
        stack.invoke(RESOLVER, {})
        return (stack.ledger_row(KILLED.guid) or {}).get("state") == "UNKNOWN"

    _until(is_given_up, _DEAD_S, f"{KILLED.guid} was not taken into doubt", pause_s=1.0)


def _alarms(stack: Stack, since_ms: int) -> tuple[str, ...]:
    """Return which of the alarms that call a person are on, by their names in the template."""
    stack.forwarder(since_ms).forward_once()
    client = stack.emulator.client("cloudwatch")
    on = {
        each["AlarmName"]
        for page in client.get_paginator("describe_alarms").paginate(StateValue="ALARM")
        for each in page["MetricAlarms"]
    }
    return tuple(each for each in CALLED_BY if stack.name_of(each) in on)


def guids(transfers: Iterable[Transfer]) -> set[str]:
    """Return their GUIDs."""
    return {each.guid for each in transfers}


def _until(
    is_so: Callable[[], bool], within_s: float, fault: str, *, pause_s: float = _POLL_S
) -> None:
    ends = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > ends:
            raise IncidentError(fault)
        time.sleep(pause_s)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
