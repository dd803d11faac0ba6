"""`GET /transactions/{guid}`: what became of a GUID, told well or badly as the fault rules say.

The rule it protects: a verdict bears the GUID, the inquiry's own id and the word X-Verdict; an
answer without that word is never one, whatever its status.
"""

from dataclasses import replace

from local.core_answers import answer_of, gateway_page, plain_json
from local.core_bank import Bank, Look, Outcome, Word
from local.core_faults import FaultBook, Group, Kind, Rule
from local.core_http import Peer, Request, Response
from local.core_transactions import GARBAGE

# Answers without the core's word; the 500 bears a definite code on purpose: an inquiry's own
# failure says nothing about the GUID.
WORDLESS = {
    Kind.INQUIRY_403: plain_json(403, {"message": "Forbidden"}),
    Kind.INQUIRY_500: plain_json(500, {"code": "E500", "detail": "the inquiry failed"}),
    Kind.INQUIRY_PROXY_404: gateway_page(404),
}


class Inquiries:
    """Answers inquiries, and keeps what a careless cache before the core would keep."""

    def __init__(self, bank: Bank, book: FaultBook) -> None:
        """Look into the bank by the rules of the book."""
        self._bank = bank
        self._book = book
        self._cached: dict[str, Response] = {}

    def forget_cached(self) -> None:
        """Empty the careless cache."""
        self._cached.clear()

    async def take(self, peer: Peer, request: Request, guid: str) -> None:
        """Answer one inquiry, or fail to."""
        rule = self._book.pick(Group.INQUIRY, guid)
        match rule.kind if rule else None:
            case Kind.INQUIRY_HANGS:
                await peer.hold(rule.seconds if rule else None)
            case Kind.INQUIRY_GARBAGE:
                await peer.send(GARBAGE)
            case _:
                await peer.answer(self._answer(request, guid, rule))

    def _answer(self, request: Request, guid: str, rule: Rule | None) -> Response:
        """Tell the truth, or what the rule makes of it."""
        inquiry_id = request.headers.get("x-inquiry-id", "")
        is_stale = rule is not None and rule.kind is Kind.INQUIRY_STALE
        known = self._bank.look(guid, self._look(rule.wait_s if rule and is_stale else 0))
        truth = verdict(guid, inquiry_id, known)
        match rule.kind if rule else None:
            case Kind.INQUIRY_FORGETS:
                return verdict(guid, inquiry_id, Word.NOT_FOUND)
            case Kind.INQUIRY_PROCESSING:
                return verdict(guid, inquiry_id, Word.PROCESSING)
            case Kind.INQUIRY_OTHER_GUID:
                return _with_header(truth, "X-GUID", f"{guid[:100]}-other")
            case Kind.INQUIRY_CACHED:
                return self._cached.setdefault(guid, truth)
            case kind:
                return WORDLESS.get(kind, truth) if kind else truth

    def _look(self, lag_s: float) -> Look:
        settings = self._book.settings
        memory_s = settings.memory_s
        return Look(
            lag_ms=round(lag_s * 1000),
            memory_ms=None if memory_s is None else round(memory_s * 1000),
            knows_refusals=settings.knows_refusals,
        )


def verdict(guid: str, inquiry_id: str, known: Outcome | Word) -> Response:
    """Give the core's word, with the GUID and the inquiry's id repeated."""
    echoed = (("X-GUID", guid), ("X-Inquiry-Id", inquiry_id), ("Cache-Control", "no-store"))
    if isinstance(known, Outcome):
        original = answer_of(known)
        told = (("X-Verdict", "PROCESSED"), ("X-Original-Status", str(original.status)))
        return replace(original, status=200, headers=(*original.headers, *told, *echoed))
    status = 202 if known is Word.PROCESSING else 404
    fields = {"verdict": known.value, "guid": guid}
    return plain_json(status, fields, ("X-Verdict", known.value), *echoed)


def _with_header(answer: Response, name: str, value: str) -> Response:
    kept = tuple(header for header in answer.headers if header[0] != name)
    return replace(answer, headers=(*kept, (name, value)))
