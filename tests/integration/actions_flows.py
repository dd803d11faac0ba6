"""For each function, flows that together do all that it does to AWS; each in a world of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

import boto3
from moto import mock_aws

from functions.reprocessor.handler import take
from relayhub.core import Answered, Doubt, HttpCore, NotSent
from relayhub.credentials import Credentials
from relayhub.flows import survey
from relayhub.gauges import Gauge, Gauges
from relayhub.message import Answer
from relayhub.surveys import Surveys
from tests.emulated import client
from tests.environment import TABLE
from tests.integration.actions_kit import Recorder
from tests.maintenance import (
    AWAY,
    NOT_FOUND,
    RUN_MS,
    cancel,
    failed_row,
    processed,
    purger,
    put_rows,
    reprocessor,
    resolver,
    sweep,
)
from tests.message_events import deliver, post_async, sqs_event, sqs_message
from tests.plant import Works
from tests.world import START_MS

LARGE: Final = Answer(200, "application/octet-stream", bytes(range(256)) * 2_000, "0000")
# A flow makes its world ready, then is at work.
Work = Callable[[], AbstractContextManager[None]]
Flow = Callable[[Works, Work], None]


def run_all(recorder: Recorder) -> None:
    """Let each function do all that it does."""
    for function, flows in FLOWS.items():
        for flow in flows:
            _run(recorder, function, flow)


@mock_aws
def _run(recorder: Recorder, function: str, flow: Flow) -> None:
    works = Works(scan_segments=1)
    recorder.queues = {
        works.queue_url: "DeadLetterQueue",
        works.rejects_url: "HintRejectsQueue",
        works.intake_url: "IntakeQueue",
        works.intake_rejects_url: "IntakeRejectsQueue",
    }
    flow(works, lambda: recorder.at_work(function))


def relayed(works: Works, work: Work) -> None:
    """Take requests: executed, resent, asked for, not sent, cancelled, accepted for later."""
    with work():
        works.post("G-1")
        works.post("G-1")
        works.get("G-1")
        works.core.outcomes.append(NotSent("connect_refused"))
        works.post("G-2")
        works.post("G-2")
        cancel(works, "G-3")
        post_async(works, "G-4")


def relayed_large(works: Works, work: Work) -> None:
    """Get an answer that is too large for its row, and replay it."""
    works.core.outcomes.append(Answered(LARGE))
    with work():
        assert works.post().body == works.post().body


def relayed_with_secret(works: Works, work: Work) -> None:
    """Take a request to a core that wants a secret."""
    want_secret(works)
    with work():
        works.post()


def relayed_in_doubt(works: Works, work: Work) -> None:
    """Get no answers, after which the hub closes the core by itself."""
    works.deploy(circuit_after=1)
    works.core.outcomes += [Doubt("no_answer", aborted=True)] * 2
    with work():
        works.post("G-1")
        works.post("G-2")


def delivered(works: Works, work: Work) -> None:
    """Take messages: new, come again, not sent, put aside, given back."""
    works.core.outcomes.append(NotSent("connect_refused"))
    with work():
        deliver(works, sqs_event(sqs_message("G-1")))
        deliver(works, sqs_event(sqs_message("G-1"), sqs_message("G-2"), sqs_message(None)))
        deliver(works, sqs_event(sqs_message("G-4")), left_ms=3_000)


def delivered_large(works: Works, work: Work) -> None:
    """Get a large answer to a message, and the message again."""
    works.core.outcomes.append(Answered(LARGE))
    with work():
        deliver(works, sqs_event(sqs_message()))
        deliver(works, sqs_event(sqs_message()))


def delivered_with_secret(works: Works, work: Work) -> None:
    """Take a message to a core that wants a secret."""
    want_secret(works)
    with work():
        deliver(works, sqs_event(sqs_message()))


def resolved(works: Works, work: Work) -> None:
    """Resolve rows that were executed, with a large answer, and that were not."""
    works.doubt("G-1")
    works.doubt("G-2")
    for _ in range(3):
        works.clock.advance(120)
        for guid in ("G-1", "G-2"):
            works.edit(guid, due_at=works.clock())
        works.core.findings[:] = [NOT_FOUND, NOT_FOUND]
        with work():
            resolver(works)
    works.doubt("G-3")
    works.edit("G-3", due_at=works.clock())
    works.core.findings[:] = [processed(LARGE)]
    with work():
        resolver(works)
    assert works.held("G-3").response_object is not None


def resolved_with_secret(works: Works, work: Work) -> None:
    """Ask a core that wants a secret."""
    works.doubt("G-1")
    works.clock.advance(120)
    want_secret(works)
    with work():
        resolver(works)


def surveyed(works: Works, work: Work) -> None:
    """Tell the alarms what is open and how much money is in doubt."""
    works.doubt("G-1", body=b'{"amount":100,"currency":"EUR"}')
    monitor = Gauges(client("cloudwatch"), "relayhub")
    with work():
        found = survey.run(works.hub, Surveys(works.dynamo, TABLE), works.clock() + RUN_MS)
        monitor.put([*survey.gauges(found), Gauge("MoneyInDoubt", 0.0)])


def unreadable(works: Works, work: Work) -> None:
    """Set a row aside that no version can read."""
    works.doubt("G-1")
    works.edit("G-1", state="A_WORD_OF_NO_VERSION")
    works.clock.advance(120)
    with work():
        resolver(works)


def reprocessed(works: Works, work: Work) -> None:
    """Take a hint whose row is sent, with a large answer, and one that is none; sweep."""
    works.fail("G-1")
    works.fail("G-2")
    works.clock.advance(3_600)
    works.core.findings[:] = [NOT_FOUND]
    works.core.outcomes.append(Answered(LARGE))
    with work():
        sweep(works)
        reprocessor(works, "G-1")
        take(works.hub, {"messageId": "m-1", "body": "no hint"}, works.clock() + RUN_MS)
    assert works.held("G-1").response_object is not None


def reprocessed_away(works: Works, work: Work) -> None:
    """Find the core away: close the gate, let a probe through, open it again."""
    works.fail("G-1")
    with work():
        for findings in ([AWAY], [AWAY], [NOT_FOUND]):
            works.clock.advance(20)
            works.core.findings[:] = findings
            reprocessor(works, "G-1")


def reprocessed_with_secret(works: Works, work: Work) -> None:
    """Take a hint of a row to a core that wants a secret."""
    works.fail("G-1")
    want_secret(works)
    with work():
        reprocessor(works, "G-1")


def purged(works: Works, work: Work) -> None:
    """Delete a row that is over with its object, mend one that bears a wrong expiry."""
    works.core.outcomes.append(Answered(LARGE))
    works.post("G-1")
    works.edit("G-1", expires_at=START_MS // 1000)
    wrong = replace(failed_row("G-2", START_MS), expires_at=START_MS // 1000)
    put_rows([wrong, failed_row("G-3", START_MS)])
    works.clock.advance(10)
    with work():
        report = purger(works)
    assert (report.deleted, report.repaired) == (1, 1)


def purged_in_parts(works: Works, work: Work) -> None:
    """Stop within a purge, and go on there with the next."""
    works.deploy(scan_segments=2)
    put_rows([failed_row(f"G-{number}", START_MS) for number in range(4)])
    with work():
        purger(works, left_ms=1)
        works.hub.upkeep.keep_cursor(0, 2, "G-1")
        purger(works)


def want_secret(works: Works) -> None:
    """Give the world a core that wants a secret, at a port that nobody listens on."""
    made = client("secretsmanager").create_secret(Name="core", SecretString="{}")
    settings = works.hub.settings
    core = HttpCore(
        settings.core_url,
        connect_s=settings.core_connect_s,
        codes=settings.definite_codes,
        answer_bytes_max=settings.answer_bytes_max,
        credentials=Credentials(made["ARN"], boto3.client("secretsmanager")),
        now_ms=works.clock,
    )
    works.hub = replace(works.hub, core=core)


FLOWS: Final[dict[str, tuple[Flow, ...]]] = {
    "RelayFunction": (relayed, relayed_large, relayed_in_doubt, relayed_with_secret),
    "MessagesFunction": (delivered, delivered_large, delivered_with_secret),
    "ResolverFunction": (resolved, resolved_with_secret, surveyed, unreadable),
    "ReprocessorFunction": (reprocessed, reprocessed_away, reprocessed_with_secret),
    "PurgerFunction": (purged, purged_in_parts),
}
