"""Events of runs by themselves, by a schedule or by hand: what a run is asked for. Pure.

The rule that it protects: an event that cannot be read is refused by an error that says so; it
never runs as if it had asked for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from relayhub.message_event import UnknownEventError


@dataclass(frozen=True)
class Run:
    """What a run is asked for; `min_age_s` None leaves the age to the settings."""

    is_dry: bool
    min_age_s: int | None


def read_run(event: object) -> Run:
    """Return what the event asks for; raises UnknownEventError. Only the JSON true is a dry run."""
    if not isinstance(event, dict):
        raise UnknownEventError(
            "This is no event of a schedule: invoke the function with a JSON object, such as {}."
        )
    min_age_s = event.get("min_age_s")
    if "min_age_s" in event and (isinstance(min_age_s, bool) or not isinstance(min_age_s, int)):
        raise UnknownEventError("min_age_s is not a whole number of seconds: send one, or none.")
    return Run(event.get("dry_run") is True, min_age_s)
