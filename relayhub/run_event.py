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
    """Return what the event asks for. Raises UnknownEventError."""
    if not isinstance(event, dict):
        raise UnknownEventError(
            "This is no event of a schedule: invoke the function with a JSON object, such as {}."
        )
    # What was meant as a dry run must not be taken for a real one, nor the other way round.
    is_dry = event.get("dry_run", False)
    if not isinstance(is_dry, bool):
        raise UnknownEventError("dry_run is neither true nor false: send one of them, or none.")
    min_age_s = event.get("min_age_s")
    if "min_age_s" in event and (isinstance(min_age_s, bool) or not isinstance(min_age_s, int)):
        raise UnknownEventError("min_age_s is not a whole number of seconds: send one, or none.")
    return Run(is_dry, min_age_s)
