"""The negative control: a consumer that sends each record straight to the core, then commits.

It does what is usually advised, process first and commit afterwards, and it is at least once: a
message twice in the log, a death before the commit, a topic read again, each costs the customer
again. The record's key is the request's GUID, as in the demo's topic.
"""

from collections.abc import Sequence
from typing import Annotated, Final

import httpx
import typer
from confluent_kafka import KafkaException

from local.kafka_client import Membership
from local.kafka_event import Record
from local.kafka_member import Member, Verdict
from local.kafka_options import (
    Batch,
    Bootstrap,
    DieBeforeCommit,
    FromBeginning,
    Group,
    Session,
    Topic,
    print_line,
    run_until_stopped,
)

_CALL_S: Final = 10.0


class NaiveHandle:
    """Posts each record to the core; without an answer the batch comes again."""

    def __init__(self, client: httpx.Client) -> None:
        """Use one client for all records."""
        self._client = client

    def __call__(self, records: Sequence[Record]) -> Verdict:
        """Send them in order; whatever the core answers counts as done."""
        statuses: list[int] = []
        try:
            for record in records:
                guid = (record.key or b"").decode("ascii", errors="replace")
                headers = {"X-GUID": guid, "Content-Type": "application/json"}
                answer = self._client.post("/transactions", content=record.value, headers=headers)
                statuses.append(answer.status_code)
        except httpx.HTTPError as error:
            return Verdict.of_whole(records, type(error).__name__, statuses=statuses)
        return Verdict(told={"statuses": statuses})


def consume(
    *,
    bootstrap: Bootstrap,
    topic: Topic,
    group: Group,
    core: Annotated[str, typer.Option(help="The core's address, http://127.0.0.1:P.")],
    batch: Batch = 10,
    session: Session = 2.0,
    from_beginning: FromBeginning = False,
    die_before_commit: DieBeforeCommit = 0,
) -> None:
    """Read a Kafka topic straight into the core, without a ledger between.

    Lines on stdout as those of local.kafka_source, with the core's HTTP
    statuses. TERM or Ctrl-C ends it after the batch in hand.
    """
    membership = Membership(
        bootstrap,
        topic,
        group,
        batch=batch,
        session_s=session,
        from_beginning=from_beginning,
        die_before_commit=die_before_commit,
    )
    # A fresh connection per record: what is seen is the consumer's doing, not a stale connection.
    limits = httpx.Limits(max_keepalive_connections=0)
    try:
        with httpx.Client(base_url=core, timeout=_CALL_S, limits=limits, trust_env=False) as client:
            run_until_stopped(Member(membership, NaiveHandle(client), print_line))
    except KafkaException as error:
        typer.echo(f"naive consumer: {error}", err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    typer.run(consume)
