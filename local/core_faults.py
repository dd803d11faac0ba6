"""Faults as data: which kinds there are, what a rule may say, and which rule meets a request.

Imports the standard library only. The rule it protects: which rule strikes depends on the rules,
the GUID and its own count alone, so the same traffic meets the same faults in whatever order.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

BIG_BYTES = 500_000  # over DynamoDB's 400 KB for an item, so that the answer must live elsewhere


class Group(StrEnum):
    """When a fault strikes: at the port, at a new connection, on a request, on an inquiry."""

    PORT = "port"
    CONNECTION = "connection"
    REQUEST = "request"
    INQUIRY = "inquiry"


class Kind(StrEnum):
    """Every fault that the core can show."""

    REFUSE = "refuse"
    ACCEPT_NOTHING = "accept_nothing"
    RESET_ON_CONNECT = "reset_on_connect"
    HANG_BEFORE = "hang_before"
    EXECUTE_THEN_HANG = "execute_then_hang"
    EXECUTE_THEN_CLOSE = "execute_then_close"
    EXECUTE_THEN_RESET = "execute_then_reset"
    EXECUTE_LATE = "execute_late"
    SLOW = "slow"
    GATEWAY_PAGE = "gateway_page"
    GARBAGE = "garbage"
    UNKNOWN_CODE = "unknown_code"
    TWO_CODES = "two_codes"
    B2XX = "b2xx"
    E500 = "e500"
    SHIFT_JIS = "shift_jis"
    BIG = "big"
    REDIRECT = "redirect"
    GZIP = "gzip"
    TRUNCATED = "truncated"
    CHUNKED = "chunked"
    NO_LENGTH = "no_length"
    DRIP = "drip"
    INQUIRY_403 = "inquiry_403"
    INQUIRY_500 = "inquiry_500"
    INQUIRY_GARBAGE = "inquiry_garbage"
    INQUIRY_PROXY_404 = "inquiry_proxy_404"
    INQUIRY_STALE = "inquiry_stale"
    INQUIRY_FORGETS = "inquiry_forgets"
    INQUIRY_HANGS = "inquiry_hangs"
    INQUIRY_CACHED = "inquiry_cached"
    INQUIRY_PROCESSING = "inquiry_processing"
    INQUIRY_OTHER_GUID = "inquiry_other_guid"


# What each kind may be told beyond whom it strikes, with its default; None is "for ever".
OPTIONS: Mapping[Kind, Mapping[str, object]] = {
    **{kind: {} for kind in Kind},
    Kind.REFUSE: {"seconds": None},
    Kind.ACCEPT_NOTHING: {"seconds": None},
    Kind.HANG_BEFORE: {"seconds": None, "executes": False},
    Kind.EXECUTE_THEN_HANG: {"seconds": None},
    Kind.EXECUTE_LATE: {"seconds": 5, "close_first": False, "seen": True},
    Kind.SLOW: {"seconds": 1},
    Kind.GATEWAY_PAGE: {"status": 502, "executes": False},
    Kind.GARBAGE: {"executes": True},
    Kind.UNKNOWN_CODE: {"code": "Z999", "executes": True},
    Kind.B2XX: {"code": "B201"},
    Kind.BIG: {"bytes": BIG_BYTES},
    Kind.REDIRECT: {"status": 307, "executes": True},
    Kind.DRIP: {"seconds": 0.5},
    Kind.INQUIRY_STALE: {"seconds": 5},
    Kind.INQUIRY_HANGS: {"seconds": None},
}
# Kinds that would mean nothing with "for ever".
NEEDS_SECONDS = {Kind.EXECUTE_LATE, Kind.SLOW, Kind.DRIP, Kind.INQUIRY_STALE}
STATUSES = {Kind.GATEWAY_PAGE: (502, 503, 504), Kind.REDIRECT: (301, 302, 303, 307, 308)}
# Whom a rule may name. Before a request is read there is no GUID; a closed port counts nothing.
TARGETS: Mapping[Group, frozenset[str]] = {
    Group.PORT: frozenset(),
    Group.CONNECTION: frozenset({"times", "rate", "seed"}),
    Group.REQUEST: frozenset(
        {"guid", "guid_prefix", "attempt", "times", "times_per_guid", "rate", "seed"}
    ),
    Group.INQUIRY: frozenset({"guid", "guid_prefix", "times", "times_per_guid", "rate", "seed"}),
}


@dataclass(frozen=True)
class Rule:
    """One fault and whom it strikes; options that its kind does not know keep their defaults."""

    kind: Kind
    guid: str | None = None
    guid_prefix: str | None = None
    attempt: int | None = None
    times: int | None = None
    times_per_guid: int | None = None
    rate: float = 1.0
    seed: int = 0
    seconds: float | None = None
    executes: bool = True
    close_first: bool = False
    seen: bool = True
    status: int = 0
    code: str = ""
    bytes: int = 0

    @property
    def wait_s(self) -> float:
        """Give the seconds of a kind that always has some."""
        return self.seconds or 0.0

    def shown(self) -> dict[str, object]:
        """Give the rule as it could be put again."""
        told = OPTIONS[self.kind].keys() | {
            name for name, default in DEFAULTS.items() if getattr(self, name) != default
        }
        return {name: value for name, value in asdict(self).items() if name in told | {"kind"}}


DEFAULTS: Mapping[str, object] = {
    "guid": None,
    "guid_prefix": None,
    "attempt": None,
    "times": None,
    "times_per_guid": None,
    "rate": 1.0,
    "seed": 0,
}


@dataclass(frozen=True)
class Settings:
    """All that `PUT /_core/faults` sets; putting one replaces the whole of the other."""

    rules: tuple[Rule, ...] = ()
    honour_not_after: bool = False
    memory_s: float | None = None
    knows_refusals: bool = True


@dataclass
class FaultBook:
    """The settings in force, and how often each rule has struck."""

    settings: Settings = Settings()
    applied: Counter[int] = field(default_factory=Counter)
    _per_guid: Counter[tuple[int, str]] = field(default_factory=Counter)
    _met: Counter[tuple[int, str]] = field(default_factory=Counter)

    def replace(self, settings: Settings) -> None:
        """Put other settings in force; all counts begin anew."""
        self.settings = settings
        self.applied.clear()
        self._per_guid.clear()
        self._met.clear()

    def pick(self, group: Group, guid: str = "", attempt: int = 0) -> Rule | None:
        """Give the first rule that strikes, and count it; None when all is well."""
        for index, rule in enumerate(self.settings.rules):
            if group_of(rule.kind) is group and self._strikes(index, rule, guid, attempt):
                self.applied[index] += 1
                self._per_guid[index, guid] += 1
                return rule
        return None

    def port_rule(self) -> Rule | None:
        """Give the first rule about the port itself."""
        rules = self.settings.rules
        return next((rule for rule in rules if group_of(rule.kind) is Group.PORT), None)

    def _strikes(self, index: int, rule: Rule, guid: str, attempt: int) -> bool:
        if rule.guid is not None and guid != rule.guid:
            return False
        if rule.guid_prefix is not None and not guid.startswith(rule.guid_prefix):
            return False
        if rule.attempt is not None and attempt != rule.attempt:
            return False
        if rule.times is not None and self.applied[index] >= rule.times:
            return False
        if rule.times_per_guid is not None and self._per_guid[index, guid] >= rule.times_per_guid:
            return False
        self._met[index, guid] += 1
        return _draw(rule.seed, index, guid, self._met[index, guid]) < rule.rate


def _draw(seed: int, index: int, guid: str, nth: int) -> float:
    """Draw a number in [0, 1) that does not depend on the order in which GUIDs arrive."""
    digest = hashlib.sha256(f"{seed}/{index}/{guid}/{nth}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def group_of(kind: Kind) -> Group:
    """Tell when a kind strikes."""
    if kind in (Kind.REFUSE, Kind.ACCEPT_NOTHING):
        return Group.PORT
    if kind is Kind.RESET_ON_CONNECT:
        return Group.CONNECTION
    return Group.INQUIRY if kind.startswith("inquiry_") else Group.REQUEST


def catalogue() -> dict[str, dict[str, object]]:
    """List every kind with what it may be told and the defaults."""
    return {
        kind.value: {"group": group_of(kind).value, "options": dict(OPTIONS[kind])} for kind in Kind
    }
