"""The bounded set-ups of requests, messages and customers: who meets whom, how often, how far."""

from __future__ import annotations

from typing import Final

from tests.explore import casts, moments, rows
from tests.explore.bank import EXECUTES, REFUSES, SILENT, WAITS, Habits
from tests.explore.casts import cancel, jobs, post, setup
from tests.explore.customer import customer
from tests.explore.rows import OTHER_BODY
from tests.explore.scheduler import KILLED, KILLED_AFTER
from tests.explore.world import START_MS, World

ASYNC: Final = {"prefer": "respond-async"}
_DAY_MS: Final = 86_400_000
_PLAIN: Final = Habits(ways=(EXECUTES,))


def _two_posts(world: World) -> None:
    post(world)
    post(world)


def _others(world: World) -> None:
    post(world)
    post(world, body=OTHER_BODY)
    post(world, channel="app")


def _in_a_row(world: World) -> None:
    post(world)
    post(world, after="post-1")
    cancel(world, after="post-1 post-2")
    post(world, after="cancel-1")


def _post_and_cancel(world: World) -> None:
    post(world)
    cancel(world)


def _post_and_resolver(world: World) -> None:
    post(world)
    jobs(world, "resolver resolver")


def _last_byte(world: World) -> None:
    post(world)
    jobs(world, "resolver resolver")
    post(world, after="resolver-1 resolver-2")


def _over(world: World) -> None:
    rows.failed(world, valid_until=START_MS + 20_000)
    post(world)
    jobs(world, "reprocessor sweep")


def _interactive_over(world: World) -> None:
    rows.failed(world, delivery="interactive", valid_until=START_MS + 20_000)
    post(world)
    jobs(world, "reprocessor sweep")


def _queue_twice(world: World) -> None:
    casts.request_message(world)
    casts.request_message(world)
    jobs(world, "messages")
    world.add("messages", world.messages)


def _batch_again(world: World) -> None:
    casts.request_message(world, "G1")
    casts.request_message(world, "G2")
    jobs(world, "messages")
    jobs(world, "messages", after="messages-1")


def _kafka_again(world: World) -> None:
    casts.topic(world, "G1 G2 G1", readers=3)


def _http_and_message(world: World) -> None:
    post(world)
    casts.request_message(world)
    jobs(world, "messages")


def _old_message(world: World) -> None:
    rows.done(world, ago_ms=31 * _DAY_MS, expires_in_ms=-1_000)
    casts.request_message(world, sent_ms=START_MS - 31 * _DAY_MS)
    jobs(world, "messages purger")


def _async(world: World) -> None:
    post(world, headers=ASYNC)
    jobs(world, "messages resolver")


def _accepted_twice(world: World) -> None:
    rows.received(world, messages=2)
    jobs(world, "messages messages")


def _accepted_late(world: World) -> None:
    rows.received(world)
    cancel(world)
    jobs(world, "messages resolver")


def _customer(world: World) -> None:
    customer(world, steps=2)


def _customer_later(world: World) -> None:
    customer(world, steps=1, headers=ASYNC)
    jobs(world, "messages")


def _customer_waits(world: World) -> None:
    customer(world, steps=3, headers={"delivery": "interactive"})


RELAY: Final = (
    setup("two-posts", "a request and its duplicate", _two_posts),
    setup(
        "others",
        "a request; another body and another channel under its GUID",
        _others,
        preemptions=1,
        habits=Habits(ways=(EXECUTES, SILENT)),
    ),
    setup(
        "in-a-row",
        "a request, its resend, its cancel, another resend, one after the other",
        _in_a_row,
        time_moves=1,
        faults=1,
        kinds=casts.ALL_KINDS,
    ),
    setup("post-cancel", "a request and its cancel", _post_and_cancel),
    setup(
        "post-resolver",
        "a request and two runs of the resolver",
        _post_and_resolver,
        preemptions=1,
        time_moves=2,
    ),
    setup(
        "last-byte",
        "a request sent at the last moment, two runs of the resolver, a resend",
        _last_byte,
        kinds=(KILLED, KILLED_AFTER, "lost"),
        preemptions=1,
        time_moves=4,
        moments=(*moments.PROOF, "last byte"),
        habits=Habits(ways=(WAITS,)),
    ),
    setup(
        "over",
        "a resend, the reprocessor and the sweep as a deferred request's validity ends",
        _over,
        preemptions=1,
        time_moves=1,
        habits=_PLAIN,
    ),
    setup(
        "over-interactive",
        "the same of an interactive request",
        _interactive_over,
        preemptions=1,
        time_moves=1,
        habits=_PLAIN,
    ),
)

MESSAGES: Final = (
    setup("queue-twice", "one message twice, two runs at once", _queue_twice, preemptions=None),
    setup(
        "batch-again", "a batch of two, and what comes again", _batch_again, habits=_PLAIN, faults=2
    ),
    setup("kafka-again", "a topic that names an act twice, three polls", _kafka_again),
    setup(
        "http-and-message",
        "a request and a message of the same act, under one channel's name",
        _http_and_message,
        settings=casts.settings(channel_names=(("sqs:relayhub-intake", "atm"),)),
        preemptions=3,
    ),
    setup("old-message", "a message beyond the memory, the purge of its row", _old_message),
    setup(
        "async",
        "a request accepted for later, its message, the resolver",
        _async,
        preemptions=1,
        time_moves=1,
        habits=_PLAIN,
    ),
    setup("accepted-twice", "an accepted request whose message comes twice", _accepted_twice),
    setup(
        "accepted-late",
        "an accepted request: its cancel, its late message, the resolver",
        _accepted_late,
        preemptions=1,
        time_moves=1,
        habits=_PLAIN,
    ),
)

CUSTOMERS: Final = (
    setup("customer", "an obedient customer's act, two steps", _customer, preemptions=2),
    setup(
        "customer-later",
        "an act accepted for later, one step, with the message function",
        _customer_later,
        preemptions=1,
        habits=_PLAIN,
    ),
    setup(
        "customer-waits",
        "an interactive act, three steps",
        _customer_waits,
        preemptions=1,
        kinds=("refused", "lost", KILLED),
        habits=Habits(ways=(EXECUTES, REFUSES)),
    ),
)
