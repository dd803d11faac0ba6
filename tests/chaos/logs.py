"""Reads the functions' logs by what they are about; there is far too much of them to read all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from local.rounds import REPROCESSOR, RESOLVER
from local.stack import RELAY, Stack
from local.stack_operator import json_lines
from tests.chaos.strikes import MESSAGES

_FUNCTIONS: Final = (RELAY, MESSAGES, RESOLVER, REPROCESSOR)
# The hub's word for: the core executed what it should not have, or so late as it should not.
_ALARMS: Final = ("contradiction", "core_longest_wrong")


def log_about(stack: Stack, text: str) -> dict[str, list[str]]:
    """Return the lines that hold the text, by function."""
    return {name: list(_lines(stack, name, text)) for name in _FUNCTIONS}


def alarms(stack: Stack) -> list[dict[str, Any]]:
    """Return what the hub said about a time limit that is wrong; the core here keeps them all."""
    return [
        entry
        for word in _ALARMS
        for lines in log_about(stack, word).values()
        for entry in json_lines(lines)
        if entry.get("message") == word
    ]


def _lines(stack: Stack, function: str, text: str) -> Iterator[str]:
    group = f"/aws/lambda/{stack.name_of(function)}"
    client = stack.emulator.client("logs")
    # The emulator gives one page, of ten thousand lines.
    found = client.filter_log_events(logGroupName=group, filterPattern=f'"{text}"')
    return (event["message"].rstrip("\n") for event in found["events"])
