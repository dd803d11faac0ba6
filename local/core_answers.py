"""The core's answers as bytes, made again from an outcome whenever they are asked for.

Imports the bank's words only. The rule it protects: the same outcome gives the same bytes, so that
the inquiry can repeat the original answer.
"""

import json

from local.core_bank import Outcome
from local.core_http import Response
from local.core_ledger import Form

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
CODE_HEADER = "X-Response-Code"


def answer_of(outcome: Outcome) -> Response:
    """Give the answer of an outcome: 200 executed, 422 a business refusal, 500 E500."""
    if not outcome.is_executed:
        status = 500 if outcome.code.startswith("E") else 422
        return _json(status, {"code": outcome.code, "guid": outcome.guid, "detail": outcome.detail})
    match outcome.form:
        case Form.SHIFT_JIS:
            return _shift_jis(outcome)
        case Form.BIG:
            return _big(outcome)
        case Form.JSON:
            return _json(200, _success(outcome))


def with_code(answer: Response, code: str) -> Response:
    """Give the answer with another code in its JSON body."""
    return _json(answer.status, {**json.loads(answer.body), "code": code})


def gateway_page(status: int) -> Response:
    """Give the page that a gateway before the core would show."""
    page = f"<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>"
    return Response(status, HTML_TYPE, page.encode())


def plain_json(status: int, fields: object, *headers: tuple[str, str]) -> Response:
    """Give any JSON answer."""
    return Response(status, JSON_TYPE, json.dumps(fields).encode(), headers)


def _success(outcome: Outcome) -> dict[str, str]:
    return {"code": outcome.code, "guid": outcome.guid, "reference": outcome.reference}


def _json(status: int, fields: dict[str, str]) -> Response:
    return Response(status, JSON_TYPE, json.dumps(fields).encode())


def _shift_jis(outcome: Outcome) -> Response:
    """Give a telegram as old cores send it: fixed width, trailing spaces, a NUL at the end."""
    text = f"振込完了 {outcome.guid} {outcome.reference}".ljust(200) + "\0"
    body = text.encode("shift_jis")
    return Response(200, "text/plain; charset=Shift_JIS", body, ((CODE_HEADER, outcome.code),))


def _big(outcome: Outcome) -> Response:
    """Give a JSON answer padded to exactly the number of bytes asked for."""
    bare = json.dumps({**_success(outcome), "statement": ""}).encode()
    filler = (f"{outcome.reference} " * (outcome.form_bytes // len(outcome.reference))).encode()
    room = max(0, outcome.form_bytes - len(bare))
    return Response(200, JSON_TYPE, bare[:-2] + filler[:room] + bare[-2:])
