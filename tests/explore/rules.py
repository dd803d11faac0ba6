"""The seven invariants, checked at every write, every word that is told, and at the end.

1. Sent again only if nothing can come of what went before: `Bank.receive` at each arrival,
   `Bank.execute` at each execution, and here each claim (`_claimed`).
2. Nothing arrives that the ledger does not say is being sent: `received`.
3. Time alone never makes a row sendable: no write says "not executed" (FAILED, E908, a refusal)
   while the core executed the GUID or still may (`_believed`); no row is taken from a holder that
   lives (`_taken_over`).
4. Nothing is lost or stuck unseen: an open row stands in the index under its state and has a next
   turn (`_is_seen`); whoever was told of a row finds it (`ended`); a message that was taken is held
   by a row or put aside (`taken`).
5. Only DONE rows bear an expiry, never before the retention, or are deleted, after it (`_expiry`,
   `_deleted`).
6. A replay is the first answer: bytes, type, status and time of acceptance; and only whoever heard
   the core says an answer without calling it a replay (`_definite`).
7. No answer makes an obedient channel pay twice: what is told is so and stays so (`told`), and the
   acts of `customer.py` are counted at each execution and at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from relayhub.replies import Reply
from relayhub.row import HELD, PARKED
from relayhub.settings import Settings
from relayhub.states import STEPS, Code, Event, Hold, State
from tests.explore import words
from tests.explore.bank import EXECUTES, Bank
from tests.explore.coverage import Coverage
from tests.explore.scheduler import ViolationError

Item = Mapping[str, Any]
_TARGETS: Final = {(str(step.event), step.source): step.target for step in STEPS}
_LEGAL: Final = {(step.source, step.target) for step in STEPS}
_FIRST_ONES_OWN: Final = (
    *("channel", "fingerprint", "scheme", "request", "request_zip", "request_type"),
    *("operation", "delivery", "accepted_at", "valid_until"),
)
_NOTHING_SENT: Final = {Code.E904, Code.E905, Code.E906, Code.E907}
# A late write takes effect up to a day after it was decided, here; the retention has room for that.
_DECIDED_BEFORE_MS: Final = 2 * 86_400_000
_REPLAYED: Final = "Idempotent-Replayed"


class Rules:
    """What must hold in one world; `who` names the call that is running."""

    def __init__(
        self,
        bank: Bank,
        settings: Settings,
        coverage: Coverage,
        who: Callable[[], str],
        *,
        holder_lives: Callable[[str], bool],
        has_wrong_clock: bool = False,
        only_doubles: bool = False,
    ) -> None:
        self.never: set[str] = set()  # GUIDs that were told never to be executed.
        self.known: set[str] = set()  # GUIDs that somebody was told of, or that had a row before.
        self.first: dict[str, tuple[object, ...]] = {}  # The core's answer as it was first told.
        self._bank = bank
        self._settings = settings
        self._coverage = coverage
        self._who = who
        self._holder_lives = holder_lives
        # A clock that is wrong by minutes gives up a row whose holder lives: then it says UNKNOWN.
        self._sending = {State.SENT, State.UNKNOWN} if has_wrong_clock else {State.SENT}
        self._only_doubles = only_doubles
        self._seen: dict[str, frozenset[str]] = {}
        self._heard: dict[str, set[bytes]] = {}
        self._sent: set[str] = set()
        self.purged: set[str] = set()

    def broken(self, what: str) -> None:
        """Say that a rule is broken. Raises ViolationError."""
        if not self._only_doubles:
            raise ViolationError(what)

    def begins(self) -> None:
        """Let a call begin: it has seen nothing yet."""
        who = self._who()
        self._seen.pop(who, None)
        self._heard.pop(who, None)
        self._sent.discard(who)

    def looked(self) -> None:
        """Remember what was so when the running call last looked at the ledger."""
        self._seen[self._who()] = self._bank.in_play()

    def heard(self, body: bytes) -> None:
        """Remember that the running call got these bytes from the core."""
        self._heard.setdefault(self._who(), set()).add(body)

    def sent(self, guid: str) -> None:
        """Remember that the running call sent a request."""
        del guid
        self._sent.add(self._who())

    def received(self, guid: str, number: int, item: Item | None) -> None:
        """Nothing arrives that the ledger does not say is being sent."""
        state, attempt = _value(item, "state"), _value(item, "attempt")
        if state not in self._sending or attempt != str(number):
            says = "no row" if item is None else f"{state}, attempt {attempt}"
            self.broken(f"{guid}, attempt {number}, arrived while the ledger says {says}")

    def executed(self, guid: str) -> None:
        """Nothing is executed that was told never to be."""
        if guid in self.never:
            self.broken(f"{guid} is executed after it was told that it never would be")

    # --- Writes ---

    def written(self, guid: str, old: Item | None, new: Item | None, event: str | None) -> None:
        """Check one write."""
        before, after = _value(old, "state"), _value(new, "state")
        if new is None:
            self._deleted(guid, old)
            return
        if (before, after) not in _LEGAL or (
            event is not None and _TARGETS.get((event, before)) != after
        ):
            self.broken(f"{guid}: {event} is no legal step from {before} to {after}")
        self._kept(guid, old, new, event)
        self._is_seen(guid, new, after)
        self._expiry(guid, old, new)
        if after != before:
            self._believed(guid, before, after, _value(new, "code"))
            self._flags(guid, old, new)
        if after == State.SENT and after != before:
            self._claimed(guid, old, new)
        if event == Event.ABANDONED:
            self._taken_over(guid, new)

    def _kept(self, guid: str, old: Item | None, new: Item, event: str | None) -> None:
        """Check that what came first stays, and that each claim counts one attempt."""
        if old is None:
            return
        for name in _FIRST_ONES_OWN:
            # The one thing of the first request that a person may change, by a redrive.
            may_change = name == "valid_until" and event == Event.REDRIVEN
            if old.get(name) != new.get(name) and not may_change:
                self.broken(f"{guid}: {name} was changed")
        for name in ("response", "response_object"):
            if name in old and old[name] != new.get(name):
                self.broken(f"{guid}: a stored answer was changed")
        is_claim = _value(new, "state") == State.SENT and old.get("claim_id") != new.get("claim_id")
        attempts = (int(_value(item, "attempt") or 0) for item in (old, new))
        if next(attempts) + is_claim != next(attempts):
            self.broken(f"{guid}: the attempt was not counted")

    def _is_seen(self, guid: str, new: Item, state: str | None) -> None:
        """Check that an open row stands in the index, where those look who move it on."""
        group = None
        if state != State.DONE:
            hold = _value(new, "hold")
            is_held = hold and not (hold == Hold.RESTORED and state == State.UNKNOWN)
            group = HELD if is_held else PARKED if "parked" in new else state
        if (_value(new, "open_shard") or "").partition("#")[0] != (group or ""):
            self.broken(f"{guid}: {state} stands in the index as {_value(new, 'open_shard')}")
        if (state == State.DONE) == ("due_at" in new):
            self.broken(f"{guid}: {state}, and its next turn is {_value(new, 'due_at')}")

    def _expiry(self, guid: str, old: Item | None, new: Item) -> None:
        expires_at = _value(new, "expires_at")
        if expires_at is None:
            return
        if _may_not_expire(new) and not (old and "expires_at" in old and _may_not_expire(old)):
            self.broken(f"{guid}: {_value(new, 'state')} bears an expiry")
        if old is not None and _value(old, "expires_at") == expires_at:
            return
        settings = self._settings
        is_evidence = _value(old, "doubted") or _value(old, "state") == State.UNKNOWN
        kept_s = settings.evidence_s if is_evidence else settings.retention_s
        if int(expires_at) * 1000 < self._bank.now_ms() + kept_s * 1000 - _DECIDED_BEFORE_MS:
            self.broken(f"{guid}: its expiry is before the retention")

    def _deleted(self, guid: str, old: Item | None) -> None:
        if old is None:
            return
        over_ms = int(_value(old, "expires_at") or 0) * 1000
        now_ms = self._bank.now_ms() + self._settings.clock_skew_s * 1000
        if _value(old, "state") != State.DONE or "hold" in old or not 0 < over_ms <= now_ms:
            self.broken(f"{guid}: deleted as {_value(old, 'state')} before its time")
        self._coverage.steps[Event.PURGED, State.DONE] += 1
        self.known.discard(guid)
        self.purged.add(guid)

    def _believed(self, guid: str, before: str | None, after: str | None, code: str | None) -> None:
        """No write says "not executed" while it was, or may yet be; none says the contrary."""
        is_in_play = guid in self._bank.in_play()
        if after == State.FAILED and is_in_play:
            self.broken(f"{guid}: {before} became FAILED, but it was executed or still may be")
        if after != State.DONE:
            return
        if words.CODES.is_executed(code or ""):
            if not self._bank.executions(guid):
                self.broken(f"{guid}: DONE {code}, and it was never executed")
        elif is_in_play:
            self.broken(f"{guid}: DONE {code}, but it was executed or still may be")

    def _flags(self, guid: str, old: Item | None, new: Item) -> None:
        """Hold before cancel before validity before parked: each stops what it must stop."""
        if old is None:
            return
        after, code = _value(new, "state"), _value(new, "code")
        is_moved_on = after == State.SENT or (after == State.DONE and code == Code.E908)
        if is_moved_on and "hold" in old:
            self.broken(f"{guid}: a row on hold became {after} {code}")
        if "cancel" in old and after in {State.SENT, State.FAILED}:
            self.broken(f"{guid}: a cancelled row became {after}")

    def _claimed(self, guid: str, old: Item | None, new: Item) -> None:
        if guid in self._bank.in_play():
            self.broken(f"{guid}: claimed again, but it was executed or still may be")
        skew_ms = self._settings.clock_skew_s * 1000
        if int(_value(new, "valid_until") or 0) + skew_ms <= self._bank.now_ms():
            self.broken(f"{guid}: claimed after its validity was over")
        if int(_value(new, "resends") or 0) > self._settings.resends_max:
            self.broken(f"{guid}: sent by the hub itself more often than the cap allows")
        by = new["history"]["L"][-1]["M"]["by"]["S"]
        if old is not None and "parked" in old and by == "reprocessor":
            self.broken(f"{guid}: a parked row was claimed by the hub itself")

    def _taken_over(self, guid: str, new: Item) -> None:
        if self._holder_lives(str(_value(new, "claim_id"))):
            self.broken(f"{guid}: given up while its holder lives")

    def told(self, guid: str, reply: Reply) -> None:
        """Check what a channel is told: it must be so, and stay so."""
        self._coverage.told[str(reply.code)] += 1
        said = words.of(reply)
        if said.has_row:
            self.known.add(guid)
        if said.is_core:
            self._definite(guid, reply)
        if said.executed == "yes" and not self._bank.executions(guid):
            self.broken(f"{guid}: told that it was executed, and it never was")
        if said.executed == "no" and guid in self._seen.get(self._who(), self._bank.in_play()):
            # A word is as old as the teller's last look at the ledger; then it must have been so.
            self.broken(f"{guid}: told {reply.code}, but it was executed or still might be")
        if said.new_guid == "yes":
            if guid in self._bank.in_play():
                self.broken(f"{guid}: told {reply.code}, but it was executed or still may be")
            self.never.add(guid)
        if reply.code in _NOTHING_SENT and self._who() in self._sent:
            self.broken(f"{guid}: told {reply.code}, though this very call sent something")

    def _definite(self, guid: str, reply: Reply) -> None:
        if reply.body not in self._bank.answers(guid):
            self.broken(f"{guid}: told an answer that the core never gave")
        answer = (reply.body, reply.status, reply.content_type, reply.headers.get("Accepted-At"))
        if self.first.setdefault(guid, answer) != answer:
            self.broken(f"{guid}: told another answer than the first time")
        is_replay = reply.headers.get(_REPLAYED) == "true"
        if not is_replay and reply.body not in self._heard.get(self._who(), set()):
            self.broken(f"{guid}: a replay was not called one")

    def taken(self, guid: str, item: Item | None, *, is_aside: bool) -> None:
        """Check that a message was taken only if the ledger holds it or a person will see it."""
        if item is not None:
            self.known.add(guid)
        elif not is_aside:
            self.broken(f"{guid}: its message was taken, and no row holds it")

    def ended(self, items: Mapping[str, Item]) -> None:
        """Rows, journal and words agree, and nothing is left open that no person looks at."""
        for guid in sorted(self.known | self._executed() - self.purged):
            if guid not in items:
                self.broken(f"{guid} was told of or executed, and no row is there")
        for guid, item in items.items():
            if not guid.startswith("!"):
                self._ended(guid, item)

    def _executed(self) -> set[str]:
        return {each.guid for each in self._bank.attempts if each.fate == EXECUTES}

    def _ended(self, guid: str, item: Item) -> None:
        state, code = _value(item, "state"), _value(item, "code")
        is_left_to_a_person = "hold" in item or "parked" in item
        self._coverage.ends[f"{state} {'left to a person' if is_left_to_a_person else code}"] += 1
        if state != State.DONE and not is_left_to_a_person:
            self.broken(f"{guid} is left open: {state}")
        count = self._bank.executions(guid)
        is_executed = words.CODES.is_executed(code or "")
        if state == State.DONE and "hold" not in item and is_executed != (count == 1):
            self.broken(f"{guid}: DONE {code}, executed {count} times")


def _may_not_expire(item: Item) -> bool:
    return _value(item, "state") != State.DONE or "hold" in item


def _value(item: Item | None, name: str) -> Any:
    """Return what the typed attribute holds: numbers as text; None without it."""
    found = None if item is None else item.get(name)
    return None if found is None else next(iter(found.values()))
