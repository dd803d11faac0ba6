"""The environment, read once into frozen Settings; the only module that reads it.

All faults are reported together, by variable name. Relations between settings guard money, so they
are checked at start-up: a function whose limits do not fit together does not start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final

from relayhub.message import GuidScope, parse_rfc3339
from relayhub.setting_values import BY_TYPE, PARSERS, parse_number, parse_text
from relayhub.states import DefiniteCodes, Delivery

# The ledger client's worst case for one write: 2 attempts of connect (0.5 s) and read (1.2 s), and
# one back-off. The margin must hold it, so that an outcome can still be written.
LEDGER_CONNECT_S: Final = 0.5
LEDGER_READ_S: Final = 1.2
LEDGER_ATTEMPTS: Final = 2
LEDGER_WRITE_WORST_S: Final = 4

# One inquiry of a maintenance function may take this long, connecting included.
INQUIRY_S_MAX: Final = 5

# API Gateway's HTTP API gives up on an integration after 30 s, which cannot be raised.
HTTP_API_LIMIT_S: Final = 30
DAY_S: Final = 86_400
MESSAGE_AHEAD_S: Final = 3_600  # A message's own time may lie ahead as far: Kafka's own default.


class SettingsError(Exception):
    """The environment does not make valid settings; the message lists every fault."""


def _seconds(default: int, doc: str, low: int = 1, high: int = 3650 * DAY_S) -> Any:
    return _number(default, doc, low, high, "s")


def _number(default: int, doc: str, low: int, high: int, unit: str = "") -> Any:
    return field(default=default, metadata={"doc": doc, "low": low, "high": high, "unit": unit})


def _other(doc: str, default: Any = MISSING) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Settings:
    """What may differ between two deployments; a field's name in capitals is its variable."""

    table_name: str = _other("The ledger's DynamoDB table.")
    dead_letter_queue_url: str = _other("The queue that takes hints of what was not sent.")
    hint_rejects_queue_url: str = _other("The queue that takes hints which nobody can read.")
    intake_queue_url: str = _other("The queue of messages: requests, and accepted ones' GUIDs.")
    intake_rejects_queue_url: str = _other(
        "The queue that takes messages which cannot be executed."
    )
    answers_bucket: str = _other("The S3 bucket for answers too large for their row.")
    core_url: str = _other("Where the core listens: http or https, host, port, base path.")
    core_name: str = _other("The core's name; a verdict counts only for rows of this name.", "core")
    core_secret_arn: str = _other("Secret with the core's credentials; empty: none.", "")
    core_deadline_s: int = _seconds(20, "One deadline over DNS, TLS, request and answer.", 1, 870)
    core_connect_s: int = _seconds(5, "The longest time for one address to connect.", 1, 60)
    margin_s: int = _seconds(4, "Kept back to write the outcome.", LEDGER_WRITE_WORST_S, 60)
    relay_timeout_s: int = _seconds(25, "The relay function's timeout.", 2, HTTP_API_LIMIT_S - 1)
    messages_timeout_s: int = _seconds(60, "The message function's timeout.", 2, 840)
    resolver_timeout_s: int = _seconds(60, "The resolver function's timeout.", 2, 900)
    reprocessor_timeout_s: int = _seconds(60, "The reprocessor function's timeout.", 2, 900)
    purger_timeout_s: int = _seconds(900, "The purger function's timeout.", 2, 900)
    core_longest_s: int = _seconds(
        60, "Longest time from the last byte sent until the core can no longer start or finish it."
    )
    clock_skew_s: int = _seconds(5, "How far two clocks may differ.", 0, 300)
    min_age_s: int = _seconds(65, "A NOT_FOUND counts only this long after the sending ended.")
    not_found_apart_s: int = _seconds(30, "Two NOT_FOUNDs must be this far apart.")
    inquiry_backoff_min_s: int = _seconds(15, "The first wait between two inquiries.")
    inquiry_backoff_max_s: int = _seconds(900, "The longest wait between two inquiries.")
    inquiries_per_s: int = _number(10, "Budget of inquiries per second.", 1, 1000)
    probe_s: int = _seconds(15, "While the core is away, one probe of it per this time.", 1, 3600)
    resends_max: int = _number(20, "The hub's own resends before a row is parked.", 1, 1000)
    delivery: Delivery = _other(  # noqa: RUF009 - it is a field like the rest
        "What the hub does with what HTTP brought and was not sent: deferred, interactive.",
        Delivery.DEFERRED,
    )
    valid_deferred_s: int = _seconds(DAY_S, "Validity of a deferred request.")
    valid_interactive_s: int = _seconds(120, "Validity of an interactive request.")
    channel_resend_longest_s: int = _seconds(DAY_S, "The longest time a channel resends a GUID.")
    intake_retention_s: int = _seconds(4 * DAY_S, "The intake queue's retention.", 2 * DAY_S)
    intake_dead_letter_retention_s: int = _seconds(14 * DAY_S, "Its dead-letter queue's retention.")
    retention_s: int = _seconds(30 * DAY_S, "How long a DONE row is kept.")
    evidence_s: int = _seconds(400 * DAY_S, "The same for rows ever in doubt or touched by hand.")
    answers_days: int = _number(414, "Days that a large answer's object is kept.", 1, 4000, "days")
    age_margin_s: int = _seconds(2 * DAY_S, "A GUID older than the retention less this is refused.")
    age_horizon_s: int = _number(
        0,
        "The shortest retention ever in force, after it was raised; 0: as now.",
        0,
        3650 * DAY_S,
        "s",
    )
    core_memory_s: int = _seconds(7 * DAY_S, "How long the core's inquiry remembers a request.")
    hold_not_found_until: str = _other(
        "After a failover of the core: until this time (RFC 3339) a NOT_FOUND proves nothing.", ""
    )
    scan_segments: int = _number(4, "Segments of the purger's scan.", 1, 64)
    shards: int = _number(16, "Index shards that are written.", 1, 1024)
    read_shards: int = _number(16, "Index shards that are read; never lower it.", 1, 1024)
    body_bytes_max: int = _number(262_144, "The largest request body.", 1, 262_144, "bytes")
    answer_bytes_max: int = _number(4_194_304, "The largest answer.", 1, 4_194_304, "bytes")
    row_bytes_max: int = _number(
        380_000, "A row's room; larger answers go to S3.", 4_096, 390_000, "bytes"
    )
    executed_codes: tuple[str, ...] = _other("Codes that mean executed; shell patterns.", ("0000",))
    refused_codes: tuple[str, ...] = _other(
        "Codes that mean refused and not executed; shell patterns.", ("B2[0-9][0-9]", "E500")
    )
    core_keeps_refusals: bool = _other(
        "Whether the core's inquiry knows refusals; if not, one that was not stored is not told.",
        default=True,
    )
    fingerprint_fields: tuple[str, ...] = _other(
        "JSON pointers of the fields that make the fingerprint; empty: the whole body.", ()
    )
    money_fields: tuple[tuple[str, str], ...] = _other(
        "JSON object: amount, currency, reference to the JSON pointer where the body has it.", ()
    )
    circuit_after: int = _number(
        20,
        "Calls in a row without an answer after which the hub closes the core; 0: never.",
        0,
        1000,
    )
    four_eyes: bool = _other(
        "Whether attesting, closing and redriving many need a second person.", default=False
    )
    proposal_s: int = _seconds(3_600, "How long such a proposal stands.", 60, DAY_S)
    guid_scope: GuidScope = _other(  # noqa: RUF009 - it is a field like the rest
        "Within what a GUID is one act's alone: global, channel; never changed on a table in use.",
        GuidScope.GLOBAL,
    )
    guid_time: bool = _other("Whether a UUIDv7's or ULID's birth time counts: auto, off.", True)  # noqa: FBT003
    channel_claim: str = _other("The JWT claim that names the channel: sub, client_id.", "sub")
    channel_names: tuple[tuple[str, str], ...] = _other(
        "JSON object: identity or source to channel name; several may map to one.", ()
    )
    source_operations: tuple[tuple[str, str], ...] = _other(
        "JSON object: source (sqs:<queue>, kafka:<topic>) to the operation of its messages.", ()
    )
    kafka_key_is_guid: bool = _other(
        "Whether a Kafka record without a GUID has its key for one; a key is often an account.",
        default=False,
    )
    kafka_partial_batches: bool = _other(
        "Whether only what was not taken of a Kafka batch comes again: false, source, true.",
        default=False,
    )

    @property
    def definite_codes(self) -> DefiniteCodes:
        """The codes by which the core says for certain whether it executed."""
        return DefiniteCodes(self.executed_codes, self.refused_codes)

    @property
    def longest_timeout_s(self) -> int:
        """The longest that any function may live; seconds."""
        return max(int(getattr(self, name)) for name in _FUNCTION_TIMEOUTS)

    @property
    def hold_not_found_until_ms(self) -> int:
        """Until when no NOT_FOUND counts; epoch milliseconds, 0 for no such time."""
        return parse_rfc3339(self.hold_not_found_until) if self.hold_not_found_until else 0

    @property
    def age_limit_s(self) -> int:
        """How old a GUID without a row may be, so that the ledger would still know of it."""
        return min(self.age_horizon_s or self.retention_s, self.retention_s) - self.age_margin_s

    def channel_name(self, identity: str) -> str:
        """Return the channel that the identity or the source of messages belongs to."""
        return dict(self.channel_names).get(identity, identity)

    def operation_of(self, source: str) -> str | None:
        """Return the operation of the source's messages; None where the setting names none."""
        return dict(self.source_operations).get(source)


_SENDER_TIMEOUTS: Final = ("relay_timeout_s", "messages_timeout_s", "reprocessor_timeout_s")
_FUNCTION_TIMEOUTS: Final = (*_SENDER_TIMEOUTS, "resolver_timeout_s")  # Those that may ask or send.


@dataclass(frozen=True)
class Relation:
    """`names[0]` must be at least `least(settings)`, which comes from the other names."""

    names: tuple[str, ...]
    least: Callable[[Settings], int]
    why: str

    def fault(self, settings: Settings) -> str | None:
        """Say what is wrong and the smallest value that would do; None if nothing is."""
        least = self.least(settings)
        if getattr(settings, self.names[0]) >= least:
            return None
        first, *rest = (name.upper() for name in self.names)
        value = getattr(settings, self.names[0])
        return f"{first}={value} is too small with {', '.join(rest)}: at least {least}, {self.why}"


def _timeout_least(settings: Settings) -> int:
    return settings.core_deadline_s + settings.margin_s + 1


def _messages_timeout_least(settings: Settings) -> int:
    # What comes again is passed over by a failed write each, before the next call must fit in.
    return settings.core_deadline_s + settings.margin_s + 15


def _asking_timeout_least(settings: Settings) -> int:
    return _timeout_least(settings) + INQUIRY_S_MAX


def _retention_least(settings: Settings) -> int:
    return 1 + sum(
        (
            settings.channel_resend_longest_s,
            # Twice: a dead letter that is put back waits in the intake queue once more.
            2 * settings.intake_retention_s,
            settings.intake_dead_letter_retention_s,
            settings.longest_timeout_s,
            settings.clock_skew_s,
        )
    )


def _core_memory_least(settings: Settings) -> int:
    doubt_s = settings.longest_timeout_s + max(settings.core_longest_s, settings.min_age_s)
    turns_s = settings.not_found_apart_s + 2 * settings.inquiry_backoff_max_s
    return doubt_s + turns_s + 2 * settings.clock_skew_s + 1


RELATIONS: Final[tuple[Relation, ...]] = (
    Relation(
        ("relay_timeout_s", "core_deadline_s", "margin_s"),
        _timeout_least,
        "so that the outcome of a call can be written before the function ends",
    ),
    Relation(
        ("messages_timeout_s", "core_deadline_s", "margin_s"),
        _messages_timeout_least,
        "so that a batch that comes again gets further each time",
    ),
    Relation(
        ("reprocessor_timeout_s", "core_deadline_s", "margin_s"),
        _asking_timeout_least,
        "so that an inquiry, a call and the writing of its outcome fit in",
    ),
    Relation(
        ("resolver_timeout_s", "margin_s"),
        lambda s: INQUIRY_S_MAX + 2 * s.margin_s,
        "so that at least one row can be asked about and written",
    ),
    Relation(
        ("core_deadline_s", "core_connect_s"),
        lambda s: s.core_connect_s,
        "since connecting is a part of the call",
    ),
    Relation(
        ("min_age_s", "core_longest_s", "clock_skew_s"),
        lambda s: s.core_longest_s + s.clock_skew_s,
        "since a NOT_FOUND before that may be followed by the execution",
    ),
    Relation(
        (
            "retention_s",
            "channel_resend_longest_s",
            "intake_retention_s",
            "intake_dead_letter_retention_s",
            *_FUNCTION_TIMEOUTS,
            "clock_skew_s",
        ),
        _retention_least,
        "since a resend after the row is gone would be executed again",
    ),
    Relation(
        ("intake_dead_letter_retention_s", "intake_retention_s"),
        lambda s: s.intake_retention_s + DAY_S,
        "since a dead letter's time counts from its first sending",
    ),
    Relation(
        ("retention_s", "age_margin_s"),
        lambda s: s.age_margin_s + 1,
        "since else every GUID with a time in it is too old",
    ),
    Relation(
        ("age_horizon_s", "age_margin_s"),
        lambda s: s.age_margin_s + 1 if s.age_horizon_s else 0,
        "since else every GUID with a time in it is too old",
    ),
    Relation(
        ("age_margin_s", "clock_skew_s"),
        lambda s: DAY_S + s.clock_skew_s,
        "since a GUID's time may lie a day ahead",
    ),
    Relation(
        ("age_margin_s", "channel_resend_longest_s", "clock_skew_s"),
        lambda s: s.channel_resend_longest_s + MESSAGE_AHEAD_S + s.clock_skew_s,
        "since a duplicate message bears a later time than the first one",
    ),
    Relation(
        ("answers_days", "evidence_s"),
        lambda s: -(-s.evidence_s // DAY_S) + 14,
        "since the object must outlive its row by 14 days",
    ),
    Relation(
        ("evidence_s", "retention_s"),
        lambda s: s.retention_s,
        "since evidence must outlive the ordinary row",
    ),
    Relation(
        (
            "core_memory_s",
            *_FUNCTION_TIMEOUTS,
            "core_longest_s",
            "min_age_s",
            "not_found_apart_s",
            "inquiry_backoff_max_s",
            "clock_skew_s",
        ),
        _core_memory_least,
        "since a doubt must resolve while the core still remembers",
    ),
    Relation(
        ("inquiry_backoff_max_s", "inquiry_backoff_min_s"),
        lambda s: s.inquiry_backoff_min_s,
        "since a back-off only grows",
    ),
    Relation(
        ("read_shards", "shards"),
        lambda s: s.shards,
        "since a shard that is written and not read hides its rows",
    ),
)


def load(environ: Mapping[str, str]) -> Settings:
    """Return the settings that the environment makes.

    Raises SettingsError, which lists every fault by variable name.
    """
    faults: list[str] = []
    values: dict[str, Any] = {}
    for each in fields(Settings):
        text = environ.get(each.name.upper())
        if text is None or (text == "" and each.default is not MISSING):
            _default(each, values, faults)
            continue
        try:
            values[each.name] = _parse(each, text)
        except ValueError as error:
            faults.append(f"{each.name.upper()}: {error}")
    if faults:
        raise SettingsError("; ".join(faults))
    return checked(Settings(**values))


def checked(settings: Settings) -> Settings:
    """Return the settings if they fit together. Raises SettingsError, which lists every misfit."""
    faults = [fault for relation in RELATIONS if (fault := relation.fault(settings))]
    if faults:
        raise SettingsError("; ".join(faults))
    return settings


def _default(each: Field[Any], values: dict[str, Any], faults: list[str]) -> None:
    if each.default is MISSING:
        faults.append(f"{each.name.upper()}: is not set; {each.metadata['doc']}")
    else:
        values[each.name] = each.default


def _parse(each: Field[Any], text: str) -> Any:
    if "low" in each.metadata:
        return parse_number(text, each.metadata["low"], each.metadata["high"])
    return PARSERS.get(each.name, BY_TYPE.get(str(each.type), parse_text))(text)
