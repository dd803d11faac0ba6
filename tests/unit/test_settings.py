"""The environment: every fault by its variable's name, all together, and how settings relate."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, replace
from typing import Any

import pytest

from relayhub import settings
from relayhub.settings import RELATIONS, Relation, Settings, SettingsError, load
from relayhub.states import DefiniteCodes, Delivery
from tests.environment import ENVIRONMENT

NEEDED = [each.name.upper() for each in fields(Settings) if each.default is MISSING]
DAY_S = 86_400

DEFAULTS = {
    "core_deadline_s": 20,
    "relay_timeout_s": 25,
    "messages_timeout_s": 60,
    "resolver_timeout_s": 60,
    "reprocessor_timeout_s": 60,
    "core_longest_s": 60,
    "clock_skew_s": 5,
    "min_age_s": 65,
    "not_found_apart_s": 30,
    "inquiry_backoff_min_s": 15,
    "inquiry_backoff_max_s": 15 * 60,
    "inquiries_per_s": 10,
    "resends_max": 20,
    "valid_deferred_s": DAY_S,
    "valid_interactive_s": 120,
    "delivery": Delivery.DEFERRED,
    "channel_resend_longest_s": DAY_S,
    "intake_retention_s": 4 * DAY_S,
    "intake_dead_letter_retention_s": 14 * DAY_S,
    "retention_s": 30 * DAY_S,
    "core_memory_s": 7 * DAY_S,
    "evidence_s": 400 * DAY_S,
    "shards": 16,
    "read_shards": 16,
    "core_connect_s": 5,
    "margin_s": 4,
    "body_bytes_max": 262_144,
    "answer_bytes_max": 4 * 1024 * 1024,
    "row_bytes_max": 380_000,
    "executed_codes": ("0000",),
    "refused_codes": ("B2[0-9][0-9]", "E500"),
    "core_keeps_refusals": True,
    "fingerprint_fields": (),
    "guid_scope": "global",
    "guid_time": True,
    "channel_claim": "sub",
    "channel_names": (),
    "core_name": "core",
    "core_secret_arn": "",
    "age_margin_s": 2 * DAY_S,
    "source_operations": (),
    "kafka_key_is_guid": False,
    "kafka_partial_batches": False,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_setting_that_is_not_set_has_its_default(name: str) -> None:
    """The defaults of the design."""
    assert getattr(load(ENVIRONMENT), name) == DEFAULTS[name]


def test_the_defaults_fit_together() -> None:
    """A deployment that sets nothing but places starts."""
    assert load({name: ENVIRONMENT[name] for name in NEEDED}).shards == 16


def faults_of(**changes: str) -> list[str]:
    """Return the faults of an environment with those variables changed."""
    with pytest.raises(SettingsError) as caught:
        load(ENVIRONMENT | changes)
    return str(caught.value).split("; ")


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("text", ["", "   "])
def test_what_is_needed_must_not_be_empty(name: str, text: str) -> None:
    """An empty text is no place."""
    (fault,) = faults_of(**{name: text})
    assert fault.startswith(f"{name}: ")


def test_all_that_is_missing_is_said_at_once() -> None:
    """By the name of each variable."""
    with pytest.raises(SettingsError) as caught:
        load({})
    for name in NEEDED:
        assert f"{name}: is not set" in str(caught.value)


def test_all_faults_are_said_together() -> None:
    """Not one at each start."""
    faults = faults_of(CORE_DEADLINE_S="x", SHARDS="0", DELIVERY="soon", TABLE_NAME="")
    names = [fault.partition(":")[0] for fault in faults]
    assert sorted(names) == ["CORE_DEADLINE_S", "DELIVERY", "SHARDS", "TABLE_NAME"]


OPTIONAL = [each.name for each in fields(Settings) if each.default is not MISSING]


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_empty_text_is_the_default(name: str) -> None:
    """A template hands over an empty text where a parameter is not given."""
    loaded = load(ENVIRONMENT | {name.upper(): ""})
    without = {key: text for key, text in ENVIRONMENT.items() if key != name.upper()}
    assert getattr(loaded, name) == getattr(load(without), name)


NUMBERS = [each for each in fields(Settings) if "low" in each.metadata]


@pytest.mark.parametrize("each", NUMBERS, ids=lambda each: str(each.name))
def test_a_number_outside_its_range_is_a_fault(each: Field[Any]) -> None:
    """One below the least, one above the most; the fault names the variable and the range."""
    low, high = each.metadata["low"], each.metadata["high"]
    name = each.name.upper()
    for value in (low - 1, high + 1):
        (fault,) = faults_of(**{name: str(value)})
        assert fault.startswith(f"{name}: must be ")


@pytest.mark.parametrize("text", ["x", "1.5", "-1", "1e3", "²", "1 000", "0x10", "+5", "٣"])
def test_what_is_no_whole_number_is_a_fault(text: str) -> None:
    """Digits only, of the kind that everybody reads."""
    (fault,) = faults_of(CORE_LONGEST_S=text)
    assert fault == f"CORE_LONGEST_S: must be a whole number, not {text!r}"


BAD_WORDS = [
    ("DELIVERY", "later"),
    ("GUID_SCOPE", "hub"),
    ("GUID_TIME", "on"),
    ("CHANNEL_CLAIM", "email"),
    ("CORE_KEEPS_REFUSALS", "yes"),
    ("CHANNEL_NAMES", "atm"),
    ("CHANNEL_NAMES", "[]"),
    ("CHANNEL_NAMES", '{"atm": 1}'),
    ("CHANNEL_NAMES", '{"atm": ""}'),
    ("FINGERPRINT_FIELDS", "amount"),
    ("FINGERPRINT_FIELDS", "/amount,id"),
    ("FINGERPRINT_FIELDS", "/a~2"),
    ("FINGERPRINT_FIELDS", "/a~"),
    ("EXECUTED_CODES", ","),
    ("EXECUTED_CODES", "*"),
    ("REFUSED_CODES", "E*"),
    ("CORE_URL", "ftp://core"),
    ("CORE_URL", "core:80"),
    ("CORE_URL", "http://user:word@core"),
]


@pytest.mark.parametrize(("name", "text"), BAD_WORDS)
def test_a_word_that_makes_no_sense_is_a_fault_at_the_start(name: str, text: str) -> None:
    """Named by its variable; not found out by each request later."""
    (fault,) = faults_of(**{name: text})
    assert fault.startswith(f"{name}: ")


GOOD_WORDS = [
    ("DELIVERY", "Interactive", "delivery", Delivery.INTERACTIVE),
    ("GUID_SCOPE", " Channel ", "guid_scope", "channel"),
    ("GUID_TIME", "off", "guid_time", False),
    ("CHANNEL_CLAIM", "client_id", "channel_claim", "client_id"),
    ("CORE_KEEPS_REFUSALS", "false", "core_keeps_refusals", False),
    ("FINGERPRINT_FIELDS", "/a, /b/0", "fingerprint_fields", ("/a", "/b/0")),
    ("EXECUTED_CODES", "0000, OK*", "executed_codes", ("0000", "OK*")),
    ("CORE_NAME", " main ", "core_name", "main"),
    ("CHANNEL_NAMES", '{"b":"x","a":"x"}', "channel_names", (("a", "x"), ("b", "x"))),
]


@pytest.mark.parametrize(("variable", "text", "name", "value"), GOOD_WORDS)
def test_a_word_is_read_as_it_is_meant(variable: str, text: str, name: str, value: object) -> None:
    """Around it blanks do not matter."""
    assert getattr(load(ENVIRONMENT | {variable: text}), name) == value


# The smallest value that would do, worked out by hand from the design.
RELATED = [
    ("RELAY_TIMEOUT_S", 25, {"CORE_DEADLINE_S": "20", "MARGIN_S": "4"}),
    ("RELAY_TIMEOUT_S", 29, {"CORE_DEADLINE_S": "20", "MARGIN_S": "8"}),
    ("MESSAGES_TIMEOUT_S", 39, {}),
    ("INTAKE_DEAD_LETTER_RETENTION_S", 5 * DAY_S, {}),
    ("REPROCESSOR_TIMEOUT_S", 30, {}),
    ("RESOLVER_TIMEOUT_S", 13, {}),
    ("CORE_DEADLINE_S", 6, {"CORE_CONNECT_S": "6"}),
    ("MIN_AGE_S", 305, {"CORE_LONGEST_S": "300"}),
    ("MIN_AGE_S", 75, {"CLOCK_SKEW_S": "15", "AGE_MARGIN_S": str(3 * DAY_S)}),
    # The intake queue's retention counts twice: a dead letter that is put back waits there again.
    ("RETENTION_S", 1 + DAY_S + 2 * 4 * DAY_S + 14 * DAY_S + 60 + 5, {}),
    (
        "RETENTION_S",
        1 + 10 * DAY_S + 2 * 4 * DAY_S + 14 * DAY_S + 60 + 5,
        {"CHANNEL_RESEND_LONGEST_S": str(10 * DAY_S), "AGE_MARGIN_S": str(11 * DAY_S)},
    ),
    (
        "RETENTION_S",
        1 + DAY_S + 2 * 13 * DAY_S + 14 * DAY_S + 840 + 5,
        {
            "INTAKE_RETENTION_S": str(13 * DAY_S),
            "MESSAGES_TIMEOUT_S": "840",
        },
    ),
    (
        "RETENTION_S",
        1 + DAY_S + 2 * 4 * DAY_S + 7 * DAY_S + 60 + 5,
        {"INTAKE_DEAD_LETTER_RETENTION_S": str(7 * DAY_S)},
    ),
    # A GUID's time may lie a day ahead; a duplicate message may be as late as a resend, and its
    # time an hour ahead.
    ("AGE_MARGIN_S", DAY_S + 5, {"CHANNEL_RESEND_LONGEST_S": "3600"}),
    ("AGE_MARGIN_S", DAY_S + 3600 + 5, {}),
    ("AGE_MARGIN_S", 3 * DAY_S + 3600 + 5, {"CHANNEL_RESEND_LONGEST_S": str(3 * DAY_S)}),
    ("AGE_MARGIN_S", DAY_S + 3600 + 15, {"CLOCK_SKEW_S": "15", "MIN_AGE_S": "75"}),
    # A GUID of the margin's age must be one that the ledger would still know of.
    ("RETENTION_S", 40 * DAY_S + 1, {"AGE_MARGIN_S": str(40 * DAY_S)}),
    ("AGE_HORIZON_S", 2 * DAY_S + 1, {}),
    ("ANSWERS_DAYS", 400 + 14, {}),
    ("EVIDENCE_S", 30 * DAY_S, {}),
    ("CORE_MEMORY_S", 60 + 65 + 30 + 2 * 900 + 2 * 5 + 1, {}),
    ("INQUIRY_BACKOFF_MAX_S", 20, {"INQUIRY_BACKOFF_MIN_S": "20"}),
    ("READ_SHARDS", 32, {"SHARDS": "32"}),
]


@pytest.mark.parametrize(
    ("name", "least", "others"), RELATED, ids=[f"{name}-{least}" for name, least, _ in RELATED]
)
def test_a_relation_holds_from_its_smallest_value(
    name: str, least: int, others: dict[str, str]
) -> None:
    """Accepted there, refused one below, with both names and the value that would do."""
    environ = ENVIRONMENT | others
    assert getattr(load(environ | {name: str(least)}), name.lower()) == least
    with pytest.raises(SettingsError, match=rf"(^|; ){name}={least - 1} is too small") as caught:
        load(environ | {name: str(least - 1)})
    assert f"at least {least}, " in str(caught.value)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda each: "-".join(each.names[:2]))
def test_each_relation_has_one_smallest_value(relation: Relation) -> None:
    """At it there is no fault; below it the fault names every variable of the relation."""
    base = replace(load(ENVIRONMENT), age_horizon_s=1)  # 0 would say that there is none.
    name, least = relation.names[0], relation.least(base)
    at_least: dict[str, Any] = {name: least}
    below: dict[str, Any] = {name: least - 1}
    assert relation.fault(replace(base, **at_least)) is None
    fault = relation.fault(replace(base, **below)) or ""
    for name in relation.names:
        assert name.upper() in fault
    assert f"at least {least}, " in fault


def test_broken_relations_are_said_together() -> None:
    """Each with the smallest value that would do."""
    faults = faults_of(RELAY_TIMEOUT_S="24", MIN_AGE_S="64", RETENTION_S="86400")
    assert len(faults) >= 3
    assert any(fault.startswith("RELAY_TIMEOUT_S=24 ") for fault in faults)
    assert any(fault.startswith("MIN_AGE_S=64 ") for fault in faults)
    assert any(fault.startswith("RETENTION_S=86400 ") for fault in faults)


def test_the_margin_holds_the_ledgers_worst_write() -> None:
    """All its attempts, their waits for connection and answer, and the back-offs between."""
    attempts = settings.LEDGER_ATTEMPTS
    waits_s = attempts * (settings.LEDGER_CONNECT_S + settings.LEDGER_READ_S)
    backoffs_s = sum(0.05 * 2**n for n in range(attempts - 1))
    assert waits_s + backoffs_s <= settings.LEDGER_WRITE_WORST_S <= load(ENVIRONMENT).margin_s


def test_settings_do_not_change() -> None:
    """Read once."""
    with pytest.raises(AttributeError):
        load(ENVIRONMENT).shards = 3  # type: ignore[misc]


def test_the_definite_codes_are_those_of_the_settings() -> None:
    """Both lists."""
    loaded = load(ENVIRONMENT | {"EXECUTED_CODES": "OK", "REFUSED_CODES": "NO"})
    assert loaded.definite_codes == DefiniteCodes(("OK",), ("NO",))


def test_the_longest_timeout_is_the_longest_of_those_that_ask_or_send() -> None:
    """Whatever its name."""
    assert load(ENVIRONMENT | {"RESOLVER_TIMEOUT_S": "700"}).longest_timeout_s == 700


def test_an_identity_without_a_name_is_its_own_channel() -> None:
    """The others have the name of the setting."""
    loaded = load(ENVIRONMENT | {"CHANNEL_NAMES": '{"AROA1":"atm"}'})
    assert (loaded.channel_name("AROA1"), loaded.channel_name("AROA2")) == ("atm", "AROA2")
