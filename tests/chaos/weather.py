"""The faults of the core and of AWS that a run has, as rules of the local core and of the proxy.

The core breaks no promise of its contract: it is late, silent, wrong in form, refuses and lies to
no one about what it executed. Its longest time is the sum of what it may wait for: a port that is
paused, a late execution, an inquiry that lags, and a machine that is busy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local.stack import SHORT_LIMITS

Rules = list[dict[str, Any]]

CORE_LONGEST_S: Final = 7
PAUSE_S: Final = 1.2
_LATE_S: Final = 1.5
_LAG_S: Final = 1.5
MESSAGES_TIMEOUT_S: Final = 22
# Above the function's timeout, so that what a killed one held comes again while the run lasts.
VISIBLE_AGAIN_S: Final = 23
STORM_S: Final = 1.0

LIMITS: Final[Mapping[str, str]] = {
    **SHORT_LIMITS,
    "CoreLongestS": str(CORE_LONGEST_S),
    "MinAgeS": str(CORE_LONGEST_S + 1),
    "InquiriesPerS": "60",
    "ResolverTimeoutS": "15",
    "ReprocessorTimeoutS": "15",
    "MessagesTimeoutS": str(MESSAGES_TIMEOUT_S),
    "IntakeBatchSize": "5",
    "IntakeConcurrency": "4",
    "HintsConcurrency": "4",
    # An interactive request is sent by its channel alone; here it ends while the run lasts.
    "ValidInteractiveS": "20",
}

HELD_MARK: Final = "held-"


@dataclass(frozen=True)
class Held:
    """A request that the core has whole and keeps its sender waiting for."""

    prefix: str
    kind: str
    seconds: float
    more: Mapping[str, Any]


# The sender is killed meanwhile: what it sent was executed, will be, or never is.
HELD: Final = (
    Held("held-run-", "execute_then_hang", 2.8, {}),
    Held("held-late-", "execute_late", 2.0, {}),
    Held("held-unseen-", "execute_late", 2.0, {"seen": False}),
    Held("held-not-", "hang_before", 2.8, {"executes": False}),
)

_REQUEST: Final[Mapping[str, tuple[float, Mapping[str, Any]]]] = {
    "execute_late": (0.005, {"seconds": _LATE_S}),
    "hang_before": (0.003, {"seconds": 3.5, "executes": False}),
    "execute_then_hang": (0.004, {"seconds": 4}),
    "execute_then_close": (0.006, {}),
    "execute_then_reset": (0.005, {}),
    "slow": (0.01, {"seconds": 0.4}),
    "gateway_page": (0.005, {"status": 502, "executes": True}),
    "garbage": (0.005, {"executes": True}),
    "unknown_code": (0.004, {"executes": False}),
    "two_codes": (0.003, {}),
    "b2xx": (0.01, {"code": "B201"}),
    "e500": (0.005, {}),
    "shift_jis": (0.003, {}),
    "big": (0.0015, {}),
    "redirect": (0.002, {"status": 307, "executes": True}),
    "gzip": (0.002, {}),
    "truncated": (0.004, {}),
    "chunked": (0.004, {}),
    "no_length": (0.003, {}),
    "drip": (0.002, {"seconds": 0.004}),
}
# More of a kind than one rule can say.
_TWINS: Final = (
    ("execute_late", 0.003, {"seconds": _LATE_S, "close_first": True, "seen": False}),
    ("gateway_page", 0.005, {"status": 503, "executes": False}),
    ("gateway_page", 0.004, {"status": 504, "executes": True}),
    ("garbage", 0.003, {"executes": False}),
)
_INQUIRY: Final[Mapping[str, tuple[float, Mapping[str, Any]]]] = {
    "inquiry_403": (0.05, {}),
    "inquiry_500": (0.05, {}),
    "inquiry_garbage": (0.04, {}),
    "inquiry_proxy_404": (0.05, {}),
    "inquiry_stale": (0.06, {"seconds": _LAG_S}),
    "inquiry_hangs": (0.02, {"seconds": 3}),
    "inquiry_cached": (0.03, {}),
    "inquiry_other_guid": (0.03, {}),
}


def core_rules(seed: int, port: str = "", seconds: float = 0.0) -> Rules:
    """Return the core's rules; `port` is a fault of its port that ends by itself."""
    rules: Rules = [{"kind": port, "seconds": seconds}] if port else []
    rules += [
        {"kind": each.kind, "guid_prefix": each.prefix, "attempt": 1, "seconds": each.seconds}
        | dict(each.more)
        for each in HELD
    ]
    rules.append({"kind": "reset_on_connect", "rate": 0.003, "seed": seed})
    drawn = [*_listed(_REQUEST), *_TWINS, *_listed(_INQUIRY)]
    for kind, rate, more in drawn:
        rules.append({"kind": kind, "rate": rate, "seed": seed, "times_per_guid": 1} | dict(more))
    return rules


def _listed(
    rates: Mapping[str, tuple[float, Mapping[str, Any]]],
) -> Iterable[tuple[str, float, Mapping[str, Any]]]:
    return ((kind, rate, more) for kind, (rate, more) in rates.items())


_THROTTLE: Final = {"error": {"code": "ProvisionedThroughputExceededException"}}
_FAULTY: Final = {"error": {"code": "InternalServerError", "status": 500}}
_DROP: Final = {"response": {"abort_bytes": 0}}  # It took effect, and not one byte comes back.
# Above the ledger client's patience of 1.2 s: it takes effect after the caller gave up.
_TOO_LATE: Final = {"latency": {"min": 1300, "max": 2400}}
_SLOW: Final = {"latency": {"min": 40, "max": 350}}
DROPPED: Final = "response:abort"
# An accepted request whose message was refused waits two minutes for the resolver; a small run
# would wait for it alone.
_PATIENT: Final = 1_000


def proxy_rules(n: int, *, storm: bool = False) -> Rules:
    """Return the proxy's rules; a storm refuses most writes for a while.

    A put meets only what leaves no doubt about the row in the end: it is applied, at once or late,
    or it is refused. A claim that was told as E901 and never applied would be a GUID without a row.
    """
    drop = max(0.025, 10 / max(n, 1))
    often = 0.6 if storm else 0.006
    return [
        *(_of("dynamodb", write, drop, _DROP) for write in ("PutItem", "UpdateItem")),
        *(_of("dynamodb", write, 0.004, _TOO_LATE) for write in ("PutItem", "UpdateItem")),
        *(_of("dynamodb", write, 0.03, _SLOW) for write in ("PutItem", "UpdateItem", "GetItem")),
        *(_of("dynamodb", write, often, _THROTTLE) for write in ("PutItem", "UpdateItem")),
        *(_of("dynamodb", call, 0.01, _THROTTLE) for call in ("GetItem", "Query")),
        _of("dynamodb", "UpdateItem", 0.004, {"reset": True}),
        _of("dynamodb", "UpdateItem", 0.004, _FAULTY),
        _of("dynamodb", "GetItem", 0.004, _FAULTY),
        _of("sqs", "SendMessage", 0.03, _DROP),
        *([_of("sqs", "SendMessage", 0.004, _FAULTY)] if n >= _PATIENT else []),
        _of("s3", "PutObject", 0.05, _DROP),
        # Given back, a message comes again when the queue shows it, not two minutes later.
        _of("sqs", "ChangeMessageVisibility", 0.8, _FAULTY),
    ]


def _of(service: str, operation: str, rate: float, what: Mapping[str, Any]) -> dict[str, Any]:
    return {"service": service, "operation": operation, "probability": rate} | dict(what)


class FiredLog:
    """What the proxy did, added up from its log, which keeps the newest two thousand alone."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._until = 0.0

    def take(self, fired: Iterable[Mapping[str, Any]]) -> None:
        """Add the entries that are newer than those of the last call."""
        new = [each for each in fired if each["ts"] > self._until]
        for each in new:
            what = str(each["action"])
            kind = what if what.startswith("response") else what.partition(":")[0]
            self.counts[kind, str(each["operation"])] += 1
        self._until = max((each["ts"] for each in new), default=self._until)

    def dropped(self) -> Counter[str]:
        """Return how many replies were dropped after the request took effect, by operation."""
        return Counter(
            {
                operation: count
                for (kind, operation), count in self.counts.items()
                if kind == DROPPED
            }
        )

    def others(self) -> Counter[str]:
        """Return how often each other fault struck."""
        found: Counter[str] = Counter()
        for (kind, _), count in self.counts.items():
            found[kind] += count if kind != DROPPED else 0
        return +found
