"""What is open now, from the whole index: how many, how old, and how much money is in doubt.

It writes nothing to the ledger. What it finds goes to the alarms; sums of money go there alone, and
into no log line.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Final

from relayhub.gauges import Gauge
from relayhub.guids import spelt
from relayhub.money import number, total
from relayhub.row import HELD, PARKED, Row
from relayhub.states import State
from relayhub.upkeep import UpkeepError

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.surveys import Surveys

GROUPS: Final = (State.SENT, State.UNKNOWN, State.RECEIVED, State.FAILED, PARKED, HELD)
_DOUBTFUL: Final = (State.UNKNOWN, HELD)
_BATCH: Final = 100
_ROWS_MAX: Final = 2_000  # So many rows in doubt are read; more than that is an alarm by itself.
_WORST_MS: Final = 8_000  # The longest that one batch, or one page, may take.
NO_CURRENCY: Final = "-"
OTHER_CURRENCY: Final = "other"
_CURRENCY: Final = re.compile(r"[A-Za-z0-9-]{1,16}")


@dataclass
class Sums:
    """Money by channel and currency; `uncounted` rows bear no amount that is a number."""

    by: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    uncounted: int = 0

    def add(self, row: Row) -> None:
        """Count the row in."""
        key = (row.channel, row.currency or NO_CURRENCY)
        self.rows[key] += 1
        amount = number(row.amount)
        if amount is None:
            self.uncounted += 1
        else:
            self.by[key] = total(self.by.get(key, Decimal(0)), amount)


@dataclass
class Survey:
    """What stood open; not `complete` where time, or the table, did not allow to see all."""

    rows: Counter[str] = field(default_factory=Counter)
    oldest_age_ms: dict[str, int] = field(default_factory=dict)
    in_doubt: Sums = field(default_factory=Sums)
    complete: bool = True


def run(hub: Hub, surveys: Surveys, dead_at_ms: int) -> Survey:
    """Look at all open rows within the time."""
    survey = Survey()
    surveys.unreadable.clear()
    doubtful: list[str] = []
    for group, shard in product(GROUPS, range(hub.settings.read_shards)):
        if hub.now_ms() + _WORST_MS > dead_at_ms:
            survey.complete = False
            return survey
        try:
            guids = [due.guid for due in surveys.open_rows(group, shard)]
        except UpkeepError as error:
            hub.note("shard_fault", group=group, reason=str(error))
            survey.complete = False
            continue
        survey.rows[group] += len(guids)
        if group in _DOUBTFUL:
            doubtful += guids
    doubtful = list(dict.fromkeys(doubtful))  # A row may have moved between two looks.
    for first in range(0, len(doubtful), _BATCH):
        if first >= _ROWS_MAX or hub.now_ms() + _WORST_MS > dead_at_ms:
            survey.complete = False
            break
        survey.complete &= _look(hub, surveys, doubtful[first : first + _BATCH], survey)
    for guid in surveys.unreadable:
        hub.note("row_fault", guid=guid, error="unreadable")
    return survey


def _look(hub: Hub, surveys: Surveys, guids: list[str], survey: Survey) -> bool:
    try:
        rows = surveys.rows(guids)
    except UpkeepError as error:
        hub.note("shard_fault", group="rows", reason=str(error))
        return False
    for row in rows:
        if row.state is State.UNKNOWN:
            survey.in_doubt.add(row)
        age_ms = hub.now_ms() - row.accepted_at
        for group in {row.state, *((HELD,) if row.hold else ())}:
            survey.oldest_age_ms[group] = max(age_ms, survey.oldest_age_ms.get(group, 0))
    # One row that nobody can read must not hide the others, nor be taken for none.
    return not surveys.unreadable


def gauges(survey: Survey) -> list[Gauge]:
    """Return the sums in doubt as metrics: by channel and currency, and by currency alone.

    A dimension takes no text as it comes: one odd one would be refused together with all others.
    """
    by_channel: dict[tuple[str, str], Decimal] = {}
    by_currency: dict[str, Decimal] = {}
    for (channel, written), amount in survey.in_doubt.by.items():
        currency = written if _CURRENCY.fullmatch(written) else OTHER_CURRENCY
        key = (spelt(channel), currency)
        by_channel[key] = total(by_channel.get(key, Decimal(0)), amount)
        by_currency[currency] = total(by_currency.get(currency, Decimal(0)), amount)
    return [
        *(
            Gauge("MoneyInDoubt", float(amount), {"channel": channel, "currency": currency})
            for (channel, currency), amount in by_channel.items()
        ),
        *(
            Gauge("MoneyInDoubt", float(amount), {"currency": currency})
            for currency, amount in by_currency.items()
        ),
    ]
