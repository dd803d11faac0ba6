"""Words that must come out nowhere: one in each thing that a caller, the core or a secret brings.

A new place that data comes from is a new line in `MARKS`, a new field that may hold some of it a
new name in `ROW_HOLDS`; everything else that comes out of the hub is searched for all of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# Letters and digits only, so that each may stand in a body, a header, a path or a key as it is.
MARKS: Final[Mapping[str, str]] = {
    "amount": "770012345600",
    "currency": "QXJ",
    "reference": "mkRefer01zz",
    "account": "mkAccnt02zz",
    "person": "mkPersn03zz",
    "header": "mkHeadr04zz",
    "authorization": "mkAuthz05zz",
    "cookie": "mkCooki06zz",
    "query": "mkQuery07zz",
    "path": "mkPathh08zz",
    "claim": "mkClaim09zz",
    "address": "mkAddrs10zz",
    "type": "mkCType11zz",
    "malformed": "mkMalfo12zz",
    "cancel": "mkCancl13zz",
    "attribute": "mkAttri14zz",
    "kafka_key": "mkKafky15zz",
    "kafka_header": "mkKafhd16zz",
    "hint": "mkHintt17zz",
    "answer": "mkAnswr18zz",
    "answer_header": "mkAnshd19zz",
    "secret": "mkSecrt20zz",
    "error": "mkError21zz",
}
# Attributes of a row that hold what was sent and answered, so that it can be sent and replayed.
ROW_HOLDS: Final = frozenset(
    {"request", "request_zip", "request_type", "response", "response_type"}
    | {"amount", "currency", "reference"}
)
# Members of a reject that hold the record itself, for the person who looks at it.
REJECT_HOLDS: Final = frozenset({"headers", "key", "body", "body_base64"})

BODY: Final = json.dumps(
    {
        "amount": int(MARKS["amount"]),
        "currency": MARKS["currency"],
        "reference": MARKS["reference"],
        "from": MARKS["account"],
        "to": {"name": MARKS["person"]},
    }
).encode()
ANSWER: Final = json.dumps({"code": "0000", "balance": MARKS["answer"]}).encode()
REFUSAL: Final = json.dumps({"code": "B201", "why": MARKS["answer"]}).encode()
HEADERS: Final[Mapping[str, str]] = {
    "content-type": f"application/json; x={MARKS['type']}",
    "x-customer": MARKS["header"],
    "x-forwarded-for": MARKS["address"],
    "authorization": f"Bearer {MARKS['authorization']}",
    "user-agent": MARKS["header"],
    "cookie": MARKS["cookie"],
}
# Headers that count, each with a word that makes the request malformed.
BAD_HEADERS: Final = (
    {"x-operation": f"{MARKS['malformed']} x"},
    {"delivery": MARKS["malformed"]},
    {"valid-until": MARKS["malformed"]},
    {"content-type": f"{MARKS['malformed']} x"},
    {"idempotency-key": f"{MARKS['malformed']} x"},
    {"idempotency-key": f'"{MARKS["malformed"]}";x=1'},
)
BAD_BODIES: Final = (
    b'{"guid":"' + MARKS["malformed"].encode() + b' "}',
    b'{"' + MARKS["malformed"].encode() + b'":1,"' + MARKS["malformed"].encode() + b'":2}',
    b"{" + MARKS["malformed"].encode(),
    MARKS["malformed"].encode() + "\ufffd".encode(),
)


def marked(event: dict[str, Any]) -> dict[str, Any]:
    """Return the HTTP API's event with a mark in everything that its caller can set."""
    query, context = MARKS["query"], event["requestContext"]
    claims = {"email": MARKS["claim"], "name": MARKS["person"]}
    iam = context["authorizer"]["iam"]
    return {
        **event,
        "headers": {**HEADERS, **event["headers"]},
        "rawQueryString": f"{query}={query}",
        "queryStringParameters": {query: query},
        "cookies": [MARKS["cookie"]],
        "requestContext": {
            **context,
            "http": {"sourceIp": MARKS["address"], "userAgent": MARKS["header"], "method": "POST"},
            "authorizer": {
                "iam": {**iam, "accessKey": MARKS["authorization"], "userArn": MARKS["person"]},
                "jwt": {"claims": claims},
            },
        },
    }


def spellings(mark: str) -> list[str]:
    """Return the mark as it stands in plain text, in hexadecimal, and in base64 at any place."""
    coded = []
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + mark.encode()).decode().rstrip("=")
        # What its neighbours have a part in is left out.
        coded.append(whole[-(-before * 8 // 6) : len(whole) - 1])
    return [mark, mark.encode().hex(), *coded]


_SPELT: Final = [(name, text) for name, mark in MARKS.items() for text in spellings(mark)]


@dataclass
class Outlets:
    """What came out, by where; it is searched as text."""

    texts: list[tuple[str, str]] = field(default_factory=list)

    def take(self, where: str, what: object) -> None:
        """Keep what came out there."""
        self.texts.append((where, what if isinstance(what, str) else repr(what)))

    def leaks(self) -> set[tuple[str, str]]:
        """Return each mark that came out, with where."""
        return {
            (name, where) for where, text in self.texts for name, spelt in _SPELT if spelt in text
        }


def told_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an item holds beside the request and its answer."""
    return {name: value for name, value in row.items() if name not in ROW_HOLDS}


def reasons_of(rejects: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what rejects say beside the records themselves."""
    return [
        {name: value for name, value in reject.items() if name not in REJECT_HOLDS}
        for reject in rejects
    ]
