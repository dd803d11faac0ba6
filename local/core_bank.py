"""The bank behind the core: accounts, executing, and what it remembers per GUID.

Imports the records only. The rule it protects is the one that makes this core dangerous: it never
compares GUIDs before executing, so a request that is read twice moves money twice.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from local.core_ledger import (
    EXECUTED_CODE,
    Execution,
    Form,
    LineFile,
    Receipt,
    execution_record,
    read_journal,
    read_received,
    received_path,
)

AMOUNT_MAX = 10**15  # more than any sum of balances here; keeps a typing error from looking real
CURRENCY = re.compile(r"[A-Z]{3}")


class MalformedTransferError(ValueError):
    """The body is not a transfer; the text says what is wrong."""


class Word(StrEnum):
    """What the core says of a GUID that has no outcome to tell."""

    NOT_FOUND = "NOT_FOUND"
    PROCESSING = "PROCESSING"


@dataclass(frozen=True)
class Transfer:
    """What a body asks for; `amount` is in the currency's minor unit."""

    source: str
    target: str
    amount: int
    currency: str


@dataclass(frozen=True)
class Outcome:
    """A definite end of one request, from which its answer can be made again."""

    guid: str
    code: str
    reference: str = ""
    form: Form = Form.JSON
    form_bytes: int = 0
    detail: str = ""

    @property
    def is_executed(self) -> bool:
        """Tell whether money was moved."""
        return self.code == EXECUTED_CODE


@dataclass(eq=False)
class Entry:
    """One request in the works or finished; `is_seen` False hides it from the inquiry."""

    guid: str
    attempt: int
    operation: str
    received_ms: int
    is_seen: bool = True
    done_ms: int | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Look:
    """What an inquiry can see: how old its replica is and what the core keeps."""

    lag_ms: int = 0
    memory_ms: int | None = None
    knows_refusals: bool = True


class Bank:
    """Accounts in memory, rebuilt at the start from the journal on disk."""

    def __init__(
        self,
        journal: Path,
        *,
        accounts: int,
        balance: int,
        now_ms: Callable[[], int],
    ) -> None:
        """Open the files and move again what the journal says was moved.

        Without a journal everything is new: a list of requests left beside it is emptied.
        """
        is_new = not journal.exists()
        self._journal = LineFile(journal)
        self._received = LineFile(received_path(journal))
        if is_new:
            self._received.empty()
        self._opening = {f"A{number:03d}": balance for number in range(1, accounts + 1)}
        self.now_ms = now_ms
        self._forget()
        self._replay()

    def receive(self, guid: str, attempt: int | None, operation: str) -> Entry:
        """Record a full request; without an attempt number it gets the core's own count."""
        self.counts[guid] += 1
        number = attempt if attempt is not None else self.counts[guid]
        entry = Entry(guid, number, operation, self.now_ms())
        self._entries[guid].append(entry)
        receipt = Receipt("received", entry.received_ms, guid, number)
        self._received.append(asdict(receipt))
        return entry

    def drop(self, entry: Entry) -> None:
        """Forget a request that ended without an outcome; a reset may have done so before."""
        known = self._entries.get(entry.guid, [])
        if entry.outcome is None and entry in known:
            known.remove(entry)

    def execute(
        self, entry: Entry, body: bytes, *, form: Form = Form.JSON, form_bytes: int = 0
    ) -> Outcome:
        """Move the money and write the journal, or refuse; never looks at earlier GUIDs."""
        try:
            transfer = read_transfer(body)
        except MalformedTransferError as error:
            return self.refuse(entry, "E500", str(error))
        refusal = self._refusal(transfer)
        if refusal is not None:
            return self.refuse(entry, *refusal)
        execution = self._execution(entry, transfer, form, form_bytes)
        # The journal comes first: balances live in memory and are rebuilt from it.
        self._journal.append(execution_record(execution))
        self._move(execution)
        return self._finish(entry, _outcome(execution), execution.time_ms)

    def refuse(self, entry: Entry, code: str, detail: str) -> Outcome:
        """End a request without moving money."""
        now_ms = self.now_ms()
        self._received.append(
            asdict(Receipt("refused", now_ms, entry.guid, entry.attempt, code, detail))
        )
        return self._finish(entry, Outcome(entry.guid, code, detail=detail), now_ms)

    def look(self, guid: str, look: Look) -> Outcome | Word:
        """Find a GUID's outcome, an executed one before all, or the word for having none."""
        seen_ms = self.now_ms() - look.lag_ms
        known = self._entries.get(guid, [])
        done = [e.outcome for e in known if e.outcome and _is_kept(e, seen_ms, look, self.now_ms)]
        executed = [outcome for outcome in done if outcome.is_executed]
        if executed:
            return executed[-1]
        if any(_is_in_works(entry, seen_ms) for entry in known):
            return Word.PROCESSING
        refused = done if look.knows_refusals else []
        return refused[-1] if refused else Word.NOT_FOUND

    def in_works(self) -> int:
        """Count the requests that were read and have no outcome yet."""
        return sum(entry.outcome is None for known in self._entries.values() for entry in known)

    def reset(self) -> None:
        """Empty both files and open the accounts anew."""
        self._journal.empty()
        self._received.empty()
        self._forget()

    def _forget(self) -> None:
        self.balances = dict(self._opening)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self._entries: defaultdict[str, list[Entry]] = defaultdict(list)
        self._seq = 0

    def _replay(self) -> None:
        for execution in read_journal(self._journal.path):
            self._move(execution)
            entry = Entry(execution.guid, execution.attempt, execution.operation, execution.time_ms)
            self._entries[execution.guid].append(entry)
            self._finish(entry, _outcome(execution), execution.time_ms)
        for receipt in read_received(self._journal.path):
            if receipt.kind == "received":
                self.counts[receipt.guid] += 1
                continue
            entry = Entry(receipt.guid, receipt.attempt, "", receipt.time_ms)
            self._entries[receipt.guid].append(entry)
            outcome = Outcome(receipt.guid, receipt.code, detail=receipt.detail)
            self._finish(entry, outcome, receipt.time_ms)

    def _refusal(self, transfer: Transfer) -> tuple[str, str] | None:
        for account in (transfer.source, transfer.target):
            if account not in self.balances:
                return "B202", "unknown account"
        if transfer.source == transfer.target:
            return "B203", "from and to are the same account"
        if self.balances[transfer.source] < transfer.amount:
            return "B201", "insufficient funds"
        return None

    def _execution(
        self, entry: Entry, transfer: Transfer, form: Form, form_bytes: int
    ) -> Execution:
        return Execution(
            seq=self._seq + 1,
            time_ms=self.now_ms(),
            guid=entry.guid,
            attempt=entry.attempt,
            operation=entry.operation,
            amount=transfer.amount,
            currency=transfer.currency,
            source=transfer.source,
            target=transfer.target,
            code=EXECUTED_CODE,
            reference=f"C{self._seq + 1:08d}",
            form=form,
            form_bytes=form_bytes,
        )

    def _move(self, execution: Execution) -> None:
        self._seq = execution.seq
        self.balances[execution.source] -= execution.amount
        self.balances[execution.target] += execution.amount

    def _finish(self, entry: Entry, outcome: Outcome, done_ms: int) -> Outcome:
        entry.outcome = outcome
        entry.done_ms = done_ms
        return outcome


def read_transfer(body: bytes) -> Transfer:
    """Read a transfer strictly; raises MalformedTransferError naming the bad field."""
    try:
        fields = json.loads(body)
    except ValueError as error:
        raise MalformedTransferError("the body is not JSON") from error
    if not isinstance(fields, dict):
        raise MalformedTransferError("the body is not a JSON object")
    source, target = fields.get("from"), fields.get("to")
    if not isinstance(source, str) or not isinstance(target, str):
        raise MalformedTransferError("from and to must be account names")
    amount, currency = fields.get("amount"), fields.get("currency", "JPY")
    if type(amount) is not int or not 0 < amount <= AMOUNT_MAX:  # a bool or a float is no amount
        raise MalformedTransferError("amount must be a whole number of minor units above 0")
    if not isinstance(currency, str) or not CURRENCY.fullmatch(currency):
        raise MalformedTransferError("currency must be three capital letters")
    return Transfer(source, target, amount, currency)


def _outcome(execution: Execution) -> Outcome:
    return Outcome(
        execution.guid,
        execution.code,
        execution.reference,
        execution.form,
        execution.form_bytes,
    )


def _is_kept(entry: Entry, seen_ms: int, look: Look, now_ms: Callable[[], int]) -> bool:
    """Tell whether a finished entry is visible to a replica and not yet forgotten."""
    if entry.done_ms is None or entry.done_ms > seen_ms:
        return False
    return look.memory_ms is None or entry.done_ms > now_ms() - look.memory_ms


def _is_in_works(entry: Entry, seen_ms: int) -> bool:
    is_started = entry.is_seen and entry.received_ms <= seen_ms
    return is_started and (entry.done_ms is None or entry.done_ms > seen_ms)
