"""The hub as a person's commands use it: its settings, ledger and switches, and no way to the core.

What the functions decide by, the commands decide by too: the settings are those of the resolver's
function, and every write is the ledger's own, under its conditions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cli.aws_errors import explain_code
from cli.command import Here
from cli.exits import CommandError, Exit
from cli.stack import Output
from relayhub.answers import AnswerStore, AnswerStoreError
from relayhub.controls import Controls
from relayhub.flows.operate import RefusedError, UnwrittenError
from relayhub.ledger import Ledger
from relayhub.proposals import NoRoomError, Proposals
from relayhub.queues import HintQueue
from relayhub.row import UnreadableRowError
from relayhub.settings import Settings, SettingsError, load
from relayhub.surveys import Surveys
from relayhub.upkeep import Upkeep, UpkeepError

if TYPE_CHECKING:
    from relayhub.hub import Hub


class NoCore:
    """A core that refuses every call: no command sends, or asks, by itself."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse it."""
        raise AssertionError(f"no command calls the core: {name}")


@dataclass(frozen=True)
class Desk:
    """One stack's hub, from a person's seat; it has what the flows for people use of a `Hub`."""

    settings: Settings
    ledger: Ledger
    upkeep: Upkeep
    controls: Controls
    surveys: Surveys
    proposals: Proposals
    hints: HintQueue
    store: AnswerStore
    now_ms: Callable[[], int]
    note: Callable[..., None]
    core: NoCore = field(default_factory=NoCore)
    chance: Callable[[], float] = random.random

    @property
    def hub(self) -> Hub:
        """The same, as the flows name it."""
        return cast("Hub", self)


def open_desk(here: Here) -> Desk:
    """Return the desk of the stack that the options name. Raises CommandError."""
    settings = read_settings(here)
    client, table, now_ms = here.stack.raw("dynamodb"), settings.table_name, here.now_ms

    def pause(attempt: int) -> None:
        here.sleep(0.1 * 2**attempt)

    def note(what: str, **facts: Any) -> None:
        # What the hub's flows note beside their result: a hint that was lost, and the like.
        said = ", ".join(f"{name} {value}" for name, value in facts.items())
        here.screen.note(f"{what}: {said}")

    return Desk(
        settings=settings,
        ledger=Ledger(client, table, shards=settings.shards, on_step=lambda *_: None, pause=pause),
        upkeep=Upkeep(client, table, now_ms=now_ms, skew_s=settings.clock_skew_s, pause=pause),
        controls=Controls(client, table, now_ms=now_ms, pause=pause),
        surveys=Surveys(client, table, pause=pause),
        proposals=Proposals(client, table, pause=pause),
        hints=HintQueue(here.stack.raw("sqs"), settings.dead_letter_queue_url, ""),
        store=AnswerStore(here.stack.raw("s3"), settings.answers_bucket),
        now_ms=now_ms,
        note=note,
    )


def read_settings(here: Here) -> Settings:
    """Return the settings that the stack's functions run under. Raises CommandError."""
    name = here.stack.name(Output.RESOLVER)
    found: Mapping[str, Any] = here.stack.client("lambda").get_function_configuration(
        FunctionName=name
    )
    environment = found.get("Environment", {})
    if "Error" in environment:
        said = environment["Error"].get("Message", "no reason given")
        raise CommandError(f"the settings of {name} cannot be read: {said}")
    try:
        return load({"TABLE_NAME": here.stack.name(Output.TABLE), **environment["Variables"]})
    except (KeyError, SettingsError) as error:
        raise CommandError(
            f"the settings of {name} are not those of this version ({error}): deploy it, or use its"
            " own command line"
        ) from error


@contextmanager
def telling() -> Iterator[None]:
    """Turn what the hub's own code raises into the sentence and the exit code of a command."""
    try:
        yield
    except RefusedError as error:
        raise CommandError(str(error), Exit.REFUSED) from error
    except UnwrittenError as error:
        raise CommandError(str(error)) from error
    except UpkeepError as error:
        raise CommandError(f"the table gave no answer: {explain_code(str(error))}") from error
    except NoRoomError as error:
        raise CommandError(
            f"the proposals that stand ({error.standing}) leave no room for this one: wait until"
            " one is approved or expires, withdraw one by `relayhub withdraw`, or name fewer rows",
            Exit.REFUSED,
        ) from error
    except AnswerStoreError as error:
        raise CommandError(f"the bucket of answers failed: {error}") from error
    except UnreadableRowError as error:
        raise CommandError(
            f"a row bears a word that no version up to this one has written ({error}): do not touch"
            " it before somebody has looked at it"
        ) from error
