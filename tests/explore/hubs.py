"""The hub as it is deployed, on the doubles of one world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from relayhub.answers import AnswerStore
from relayhub.controls import Controls
from relayhub.core import HttpCore
from relayhub.credentials import Credentials
from relayhub.hub import Hub
from relayhub.ledger import Ledger
from relayhub.queues import HintQueue, IntakeQueue
from relayhub.settings import Settings
from relayhub.upkeep import Upkeep

if TYPE_CHECKING:
    from tests.explore.world import World

HINTS: Final = "hints"
INTAKE: Final = "intake"
REJECTS: Final = "rejects"
# No secret, and one context for all: making one reads the machine's certificates.
_CREDENTIALS: Final = Credentials("", None, monotonic=lambda: 0.0)


def make_hub(world: World, settings: Settings) -> Hub:
    """Return a hub whose clock, ids, AWS and network are the world's; it never pauses."""
    aws, clock, skew_s = world.aws, world.clock, settings.clock_skew_s
    return Hub(
        settings=settings,
        ledger=Ledger(aws, "t", shards=settings.shards, on_step=world.stepped, pause=_no_pause),
        upkeep=Upkeep(aws, "t", now_ms=clock, skew_s=skew_s, pause=_no_pause),
        controls=Controls(aws, "t", now_ms=clock, pause=_no_pause),
        core=HttpCore(
            settings.core_url,
            connect_s=settings.core_connect_s,
            codes=settings.definite_codes,
            answer_bytes_max=settings.answer_bytes_max,
            credentials=_CREDENTIALS,
            now_ms=clock,
            monotonic=lambda: world.ms / 1000,
        ),
        hints=HintQueue(aws, HINTS, REJECTS),
        intake=IntakeQueue(aws, INTAKE, REJECTS),
        store=AnswerStore(None, "none"),
        now_ms=clock,
        new_id=world.new_id,
        chance=lambda: 0.5,
        sleep=lambda seconds: world.advance_to(world.ms + int(seconds * 1000) + 1),
        note=world.noted,
    )


def _no_pause(attempt: int) -> None:
    """Go on at once: between two tries of a request others may go on all the same."""
    del attempt
