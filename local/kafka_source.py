"""Does on this machine what Lambda's Kafka event source does, since the emulator has none.

It reads as a member of a consumer group, invokes the function with the true event and waits, and
commits only after success. An error, a throttle, a dead function: the whole batch comes again, the
same records in order, without end. With partial answers on it commits up to each partition's
first failure and reads on from there. It never commits for a partition that it no longer owns.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Annotated, Any, Final

import boto3
import typer
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import KafkaException

from local.emulator import REGION, ROOT
from local.kafka_client import Membership
from local.kafka_event import MalformedAnswerError, Record, again_from, event_of
from local.kafka_member import Member, Verdict
from local.kafka_options import (
    Batch,
    Bootstrap,
    DieBeforeCommit,
    FromBeginning,
    Group,
    Session,
    Topic,
    Window,
    print_line,
    run_until_stopped,
)

_ASK_S: Final = 10
_OVER_TIMEOUT_S: Final = 10  # The platform's own end of a call is seen, not ours.
_SAID_MAX: Final = 400


class LambdaHandle:
    """Invokes the function with a batch, and says what must come again."""

    def __init__(self, client: Any, function: str, bootstrap: str, *, partial: bool) -> None:
        """Use a boto3 client of Lambda that sends nothing twice by itself."""
        self._client = client
        self._function = function
        self._bootstrap = bootstrap
        self._partial = partial

    def __call__(self, records: Sequence[Record]) -> Verdict:
        """Invoke and wait; any failure is a verdict, none is raised."""
        payload = json.dumps(event_of(records, self._bootstrap)).encode()
        try:
            answer = self._client.invoke(FunctionName=self._function, Payload=payload)
            said: bytes = answer["Payload"].read()
        except (ClientError, BotoCoreError) as error:
            return Verdict.of_whole(records, f"{type(error).__name__}: {error}")
        if "FunctionError" in answer:
            return Verdict.of_whole(records, said.decode(errors="replace")[:_SAID_MAX])
        return self._verdict(records, said)

    def _verdict(self, records: Sequence[Record], said: bytes) -> Verdict:
        """Read the answer only where the event source was told to; else any answer is success."""
        if not self._partial:
            return Verdict()
        try:
            begins = again_from(said, records)
        except MalformedAnswerError as error:
            return Verdict.of_whole(records, f"malformed answer: {error}")
        return Verdict(begins, "by the function's answer" if begins else "")


def lambda_client(endpoint: str, function: str) -> Any:
    """Return a client that waits longer than the function may run; raises BotoCore's errors."""
    asking = _client(endpoint, _ASK_S)
    found = asking.get_function_configuration(FunctionName=function)
    return _client(endpoint, int(found["Timeout"]) + _OVER_TIMEOUT_S)


def _client(endpoint: str, read_s: int) -> Any:
    """Return a client as the emulator's administrator; nothing of the developer's goes there."""
    session = boto3.Session(ROOT.key, ROOT.secret, region_name=REGION)
    make: Any = session.client
    config = Config(
        proxies={},
        connect_timeout=_ASK_S,
        read_timeout=read_s,
        # The SDK's own retry would be a second call that nobody counts.
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    return make("lambda", endpoint_url=endpoint, config=config)


def source(
    *,
    bootstrap: Bootstrap,
    topic: Topic,
    group: Group,
    function: Annotated[str, typer.Option(help="The function's name.")],
    endpoint: Annotated[str, typer.Option(help="The local emulator, http://127.0.0.1:P.")],
    batch: Batch = 10,
    window: Window = 0.5,
    session: Session = 2.0,
    partial: Annotated[
        bool, typer.Option("--partial", help="Read batchItemFailures in the function's answer.")
    ] = False,
    from_beginning: FromBeginning = False,
    die_before_commit: DieBeforeCommit = 0,
) -> None:
    """Read a Kafka topic into a function, as Lambda's Kafka event source does.

    The function is one of the local stack. One JSON line per batch goes to
    stdout: offsets, attempt, outcome (taken, partly taken, again, killed
    before commit) and what was committed; other lines tell of partitions that
    were assigned, revoked or lost, and of errors.

    A batch that fails comes again without end. TERM or Ctrl-C ends the source
    after the batch in hand.
    """
    membership = Membership(
        bootstrap,
        topic,
        group,
        batch=batch,
        window_s=window,
        session_s=session,
        from_beginning=from_beginning,
        die_before_commit=die_before_commit,
    )
    try:
        with closing(lambda_client(endpoint, function)) as client:
            handle = LambdaHandle(client, function, bootstrap, partial=partial)
            run_until_stopped(Member(membership, handle, print_line))
    except (ClientError, BotoCoreError, KafkaException) as error:
        typer.echo(f"kafka source: {error}", err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    typer.run(source)
