"""The bounded set-ups of a person: every act meets the functions that move the same row."""

from __future__ import annotations

from typing import Final

from relayhub.states import Hold
from tests.explore import moments, persons, rows
from tests.explore.bank import EXECUTES, REFUSES, Habits
from tests.explore.casts import cancel, jobs, post, setup
from tests.explore.persons import person
from tests.explore.scheduler import KILLED
from tests.explore.world import START_MS, World

_PLAIN: Final = Habits(ways=(EXECUTES,))
_SHORT_MS: Final = 20_000
_KINDS: Final = (KILLED, "lost", "reply_lost", "late")


def _failed(world: World) -> None:
    rows.failed(world)
    person(world, persons.PARKS, persons.HOLDS, persons.REDRIVES, persons.CLOSES)
    post(world)
    jobs(world, "reprocessor")


def _parked(world: World) -> None:
    rows.failed(world, parked="cap", resends=4, valid_until=START_MS + _SHORT_MS)
    person(world, persons.REDRIVES, persons.CLOSES)
    jobs(world, "reprocessor sweep")
    cancel(world)


def _received(world: World) -> None:
    rows.received(world)
    person(world, persons.HOLDS, persons.CLOSES)
    person(world, persons.RELEASES, after="person-1")
    jobs(world, "messages resolver")


def _unknown(world: World) -> None:
    rows.unknown(world)
    person(world, persons.HOLDS, persons.EXECUTED, persons.NOT_EXECUTED)
    jobs(world, "resolver")


def _at_the_end(world: World) -> None:
    rows.unknown(world, **rows.nearly_believed())
    person(world, persons.EXECUTED, persons.NOT_EXECUTED)
    jobs(world, "resolver")
    cancel(world)


def _contradiction(world: World) -> None:
    rows.failed(world, hold=Hold.CONTRADICTION, doubted=True)
    rows.executed_before(world, rows.G, 0)
    person(world, persons.RELEASES)
    post(world)
    jobs(world, "reprocessor resolver")


def _released(world: World) -> None:
    rows.unknown(world, hold=Hold.OPERATOR)
    person(world, persons.RELEASES, persons.EXECUTED)
    jobs(world, "resolver resolver")


def _sent(world: World) -> None:
    post(world)
    person(world, persons.HOLDS)
    person(world, persons.RELEASES, after="person-1")
    post(world)


PERSONS: Final = (
    setup(
        "person-failed",
        "a person parks, holds, redrives or closes what a resend and the reprocessor would send",
        _failed,
        kinds=_KINDS,
        preemptions=1,
        habits=_PLAIN,
    ),
    setup(
        "person-parked",
        "a person redrives or closes a parked row at the end of its validity; a cancel",
        _parked,
        kinds=(KILLED, "reply_lost"),
        preemptions=1,
        time_moves=1,
        habits=_PLAIN,
    ),
    setup(
        "person-received",
        "a person holds, releases or closes what was accepted for later",
        _received,
        kinds=_KINDS,
        preemptions=1,
        habits=_PLAIN,
    ),
    setup(
        "person-unknown",
        "a person holds or attests a row in doubt whose request may still be executed",
        _unknown,
        kinds=_KINDS,
        preemptions=1,
        time_moves=3,
        moments=moments.PROOF,
        habits=_PLAIN,
    ),
    setup(
        "person-at-the-end",
        "a person attests what the resolver may believe; a cancel",
        _at_the_end,
        kinds=_KINDS,
        preemptions=1,
        habits=_PLAIN,
    ),
    setup(
        "person-contradiction",
        "a person releases a contradiction about what was executed; a resend, the jobs",
        _contradiction,
        kinds=_KINDS,
        preemptions=1,
        habits=_PLAIN,
    ),
    setup(
        "person-released",
        "a person releases or attests a row in doubt on hold; two runs of the resolver",
        _released,
        kinds=(KILLED, "reply_lost"),
        preemptions=1,
        time_moves=2,
        moments=moments.PROOF,
        habits=_PLAIN,
    ),
    setup(
        "person-sent",
        "a person holds and releases a row while its request is on its way; a resend",
        _sent,
        kinds=_KINDS,
        preemptions=1,
        habits=Habits(ways=(EXECUTES, REFUSES)),
    ),
)
