"""Reading what is put to the core's control: strict, and naming every problem at once.

Imports the faults only. The rule it protects: a rule that could not do what its author meant (a
GUID on a fault that strikes before anything is read) is refused, never ignored.
"""

from collections.abc import Callable, Mapping

from local.core_faults import (
    NEEDS_SECONDS,
    OPTIONS,
    STATUSES,
    TARGETS,
    Kind,
    Rule,
    Settings,
    group_of,
)

BIG_BYTES_MIN = 512  # room for the code, a GUID of 256 characters and the reference
SECONDS_MAX = 86_400
BIG_BYTES_MAX = 16 * 1024 * 1024  # four times the hub's own limit for an answer


class FaultsError(ValueError):
    """The control's input is wrong; `problems` names each fault of it."""

    def __init__(self, problems: list[str]) -> None:
        """Join the problems into one text."""
        super().__init__("; ".join(problems))
        self.problems = problems


def read_settings(data: object) -> Settings:
    """Read what was put: a list of rules, or an object with `rules` and switches.

    Raises FaultsError with every problem found.
    """
    switches = data if isinstance(data, dict) else {"rules": data}
    problems = [f"unknown switch {name!r}" for name in switches if name not in SWITCHES]
    rules = switches.get("rules", [])
    if not isinstance(rules, list):
        raise FaultsError([*problems, "the rules must be a JSON list of objects"])
    for name in SWITCHES.keys() & switches.keys():
        is_right, wanted = SWITCHES[name]
        if not is_right(switches[name]):
            problems.append(f"{name!r} must be {wanted}")
    for index, rule in enumerate(rules):
        problems += [f"rule {index}: {problem}" for problem in _problems(rule)]
    if problems:
        raise FaultsError(problems)
    return Settings(**{**switches, "rules": tuple(_rule(rule) for rule in rules)})


def _rule(data: Mapping[str, object]) -> Rule:
    kind = Kind(str(data["kind"]))
    return Rule(**{**OPTIONS[kind], **data, "kind": kind})  # type: ignore[arg-type]


def _problems(data: object) -> list[str]:
    """Name everything that is wrong with one rule."""
    if not isinstance(data, dict):
        return ["must be a JSON object"]
    kind = next((known for known in Kind if known == data.get("kind")), None)
    if kind is None:
        return [f"unknown kind {data.get('kind')!r}"]
    allowed = {"kind"} | TARGETS[group_of(kind)] | OPTIONS[kind].keys()
    problems = [
        f"{name!r} means nothing to {kind.value}; it takes {', '.join(sorted(allowed))}"
        for name in data
        if name not in allowed
    ]
    for name in FIELDS.keys() & data.keys() & allowed:
        is_right, wanted = FIELDS[name]
        if not is_right(data[name]):
            problems.append(f"{name!r} must be {wanted}, not {data[name]!r}")
    return problems + _kind_problems(kind, data)


def _kind_problems(kind: Kind, data: Mapping[str, object]) -> list[str]:
    """Name what is wrong for this kind only."""
    told = {**OPTIONS[kind], **data}
    is_for_ever = "seconds" in told and told["seconds"] is None
    problems = []
    if is_for_ever and (kind in NEEDS_SECONDS or told.get("executes") is True):
        problems.append(f"'seconds' must be a number for a {kind.value} that executes or answers")
    if kind in STATUSES and told["status"] not in STATUSES[kind]:
        problems.append(f"'status' of {kind.value} must be one of {STATUSES[kind]}")
    return problems


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_seconds(value: object) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= SECONDS_MAX)  # type: ignore[operator]


def _is_rate(value: object) -> bool:
    return _is_number(value) and 0 <= value <= 1  # type: ignore[operator]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_size(value: object) -> bool:
    return type(value) is int and BIG_BYTES_MIN <= value <= BIG_BYTES_MAX


Check = tuple[Callable[[object], bool], str]
FIELDS: Mapping[str, Check] = {
    "guid": (_is_text, "a text that is not empty"),
    "guid_prefix": (_is_text, "a text that is not empty"),
    "attempt": (_is_count, "a whole number from 1"),
    "times": (_is_count, "a whole number from 1"),
    "times_per_guid": (_is_count, "a whole number from 1"),
    "rate": (_is_rate, "a number from 0 to 1"),
    "seed": (lambda value: type(value) is int, "a whole number"),
    "seconds": (_is_seconds, f"a number from 0 to {SECONDS_MAX}, or null for ever"),
    "executes": (_is_flag, "true or false"),
    "close_first": (_is_flag, "true or false"),
    "seen": (_is_flag, "true or false"),
    "status": (lambda value: type(value) is int, "an HTTP status"),
    "code": (_is_text, "a text that is not empty"),
    "bytes": (_is_size, f"a whole number from {BIG_BYTES_MIN} to {BIG_BYTES_MAX}"),
}
SWITCHES: Mapping[str, Check] = {
    "rules": (lambda value: isinstance(value, list), "a list"),
    "honour_not_after": (_is_flag, "true or false"),
    "memory_s": (_is_seconds, f"a number from 0 to {SECONDS_MAX}, or null for ever"),
    "knows_refusals": (_is_flag, "true or false"),
}
