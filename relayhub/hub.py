"""What the flows stand on, made once per function: settings, ledger, core, queue, store, clock."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from relayhub import answers, dynamo, queues, telemetry
from relayhub.answers import AnswerStore
from relayhub.controls import Controls
from relayhub.core import CoreRequest, Finding, HttpCore, SendOutcome
from relayhub.credentials import Credentials, secrets_client
from relayhub.ledger import Ledger
from relayhub.queues import HintQueue, IntakeQueue
from relayhub.settings import Settings, load
from relayhub.upkeep import Upkeep


def epoch_ms() -> int:
    """Return the wall clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def new_claim_id() -> str:
    """Return a random UUID4: never the request's id, which a retry of the platform repeats."""
    return str(uuid.uuid4())


class Core(Protocol):
    """The seam for a core of another protocol: connect, send, read an answer; and ask."""

    def prepare(self) -> None:
        """Read what a call needs, before anything is claimed; raises CredentialsError."""

    def send(self, request: CoreRequest, *, within_s: float) -> SendOutcome:
        """Send the request once and say what is certain; raises nothing."""

    def ask(self, guid: str, *, inquiry_id: str, within_s: float) -> Finding:
        """Ask what became of the GUID; raises nothing."""


@dataclass(frozen=True)
class Hub:
    """The parts that a flow uses; tests pass their own clock, ids and chance."""

    settings: Settings
    ledger: Ledger
    upkeep: Upkeep
    controls: Controls
    core: Core
    hints: HintQueue
    intake: IntakeQueue
    store: AnswerStore
    now_ms: Callable[[], int] = epoch_ms
    new_id: Callable[[], str] = new_claim_id
    chance: Callable[[], float] = field(default=random.random)
    sleep: Callable[[float], None] = time.sleep
    note: Callable[..., None] = telemetry.note


def build() -> Hub:
    """Return the hub that the environment describes. Raises SettingsError."""
    settings = load(os.environ)
    secret_arn = settings.core_secret_arn
    table, client, sqs = settings.table_name, dynamo.make_client(), queues.make_client()
    return Hub(
        settings=settings,
        ledger=Ledger(client, table, shards=settings.shards, on_step=telemetry.step),
        upkeep=Upkeep(client, table, now_ms=epoch_ms, skew_s=settings.clock_skew_s),
        controls=Controls(client, table, now_ms=epoch_ms),
        core=HttpCore(
            settings.core_url,
            connect_s=settings.core_connect_s,
            codes=settings.definite_codes,
            answer_bytes_max=settings.answer_bytes_max,
            credentials=Credentials(secret_arn, secrets_client() if secret_arn else None),
            now_ms=epoch_ms,
        ),
        hints=HintQueue(sqs, settings.dead_letter_queue_url, settings.hint_rejects_queue_url),
        intake=IntakeQueue(sqs, settings.intake_queue_url, settings.intake_rejects_queue_url),
        store=AnswerStore(answers.make_client(), settings.answers_bucket),
    )
