"""The judgement of an answer, apart from any network: what is definite, and what never is."""

from __future__ import annotations

import http.client
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayhub.judgement import DoubtError, Reason, Reply, judge
from relayhub.message import Answer
from relayhub.states import DefiniteCodes
from relayhub.wire import AnswerStream, EndedEarlyError, read_reply
from tests.integration.core_kit import ANSWER_BYTES_MAX, BODY, GUID, JSON_TYPE, answer, chunked

if TYPE_CHECKING:
    import socket

CODES = DefiniteCodes()
TEXT = ("Content-Type", "text/plain")


class Stream:
    """What http.client reads an answer from, made of bytes that end early or not."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return the reader, as the connection to the core makes it."""
        assert mode == "rb"
        return io.BufferedReader(AnswerStream(self.data.readinto))


def read(data: bytes) -> Reply:
    """Read an answer as the core module does."""
    response = http.client.HTTPResponse(cast("socket.socket", Stream(data)), method="POST")
    try:
        response.begin()
        return read_reply(response, bytes_max=ANSWER_BYTES_MAX)
    finally:
        response.close()


def judged(reply: Reply) -> Answer | Reason:
    """Return the answer or the reason of the doubt."""
    try:
        return judge(reply, guid=GUID, codes=CODES)
    except DoubtError as error:
        return error.reason


def reply_of(
    body: bytes = BODY, *headers: tuple[str, str], status: int = 200, of_type: str | None = None
) -> Reply:
    """Return a complete reply, JSON unless said otherwise."""
    own = JSON_TYPE if of_type is None else ("Content-Type", of_type)
    return Reply(status, (own, *headers), body)


@pytest.mark.parametrize("status", [200, 201, 400, 401, 404, 409, 422, 499, 500, 501, 505, 599])
def test_a_definite_code_counts_whatever_the_cores_own_status(status: int) -> None:
    """The code says what happened; the status is the core's business."""
    assert judged(reply_of(status=status)) == Answer(status, "application/json", BODY, "0000")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        *((status, Reason.INTERIM_STATUS) for status in (100, 101, 102, 103, 199)),
        *((status, Reason.REDIRECT) for status in (300, 301, 302, 303, 304, 307, 308, 399)),
        *((status, Reason.GATEWAY_STATUS) for status in (408, 429, 502, 503, 504, 600, 999)),
    ],
)
@pytest.mark.parametrize("code", ["0000", "B201", "E500"])
def test_a_status_of_others_is_a_doubt_whatever_the_body(
    status: int, reason: Reason, code: str
) -> None:
    """A balancer can send these with any page, a cached answer of the core's included."""
    assert judged(reply_of(b'{"code":"%b"}' % code.encode(), status=status)) is reason


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(reply_of(b'{"code":"0000"}'), "0000", id="executed"),
        pytest.param(reply_of(b'{"code":"B299"}'), "B299", id="refused"),
        pytest.param(reply_of(b'{"code":"B29"}'), Reason.UNKNOWN_CODE, id="too_short"),
        pytest.param(reply_of(b'{"code":"B2011"}'), Reason.UNKNOWN_CODE, id="too_long"),
        pytest.param(reply_of(b'{"code":"b201"}'), Reason.UNKNOWN_CODE, id="other_case"),
        pytest.param(reply_of(b'{"code":"0000\\n"}'), Reason.UNKNOWN_CODE, id="line_break"),
        pytest.param(reply_of(b'{"code":" 0000"}'), Reason.UNKNOWN_CODE, id="blank"),
        pytest.param(reply_of(b'{"code":""}'), Reason.UNKNOWN_CODE, id="empty_code"),
        pytest.param(reply_of(b'{"code":"E901"}'), Reason.UNKNOWN_CODE, id="the_hubs_own"),
        pytest.param(reply_of(b'{"code":0}'), Reason.NO_CODE, id="number"),
        pytest.param(reply_of(b'{"code":null}'), Reason.NO_CODE, id="null"),
        pytest.param(reply_of(b'{"code":["0000"]}'), Reason.NO_CODE, id="list"),
        pytest.param(reply_of(b'{"a":{"code":"0000"}}'), Reason.NO_CODE, id="not_top_level"),
        pytest.param(reply_of(b'["0000"]'), Reason.NO_CODE, id="not_an_object"),
        pytest.param(reply_of(b'"0000"'), Reason.NO_CODE, id="a_string"),
        pytest.param(reply_of(b""), Reason.NOT_JSON, id="empty_body"),
        pytest.param(reply_of(b'{"code":"0000"'), Reason.NOT_JSON, id="cut_JSON"),
        pytest.param(reply_of(b'{"code":"0000"}x'), Reason.NOT_JSON, id="more_than_JSON"),
        pytest.param(
            reply_of(b'{"code":"B201","code":"0000"}'), Reason.NOT_JSON, id="the_code_twice"
        ),
        pytest.param(reply_of(b'{"code":"0000","a":NaN}'), Reason.NOT_JSON, id="NaN"),
        pytest.param(
            reply_of('{"code":"0000","a":"残"}'.encode("shift_jis")), Reason.NOT_JSON, id="not_UTF8"
        ),
        pytest.param(reply_of(b"[" * 100_000), Reason.NOT_JSON, id="too_deep"),
        pytest.param(reply_of(of_type="application/json; charset=utf-8"), "0000", id="charset"),
        pytest.param(reply_of(of_type="Application/JSON"), "0000", id="other_case_of_type"),
        pytest.param(reply_of(of_type="application/vnd.bank+json"), "0000", id="plus_json"),
        pytest.param(reply_of(of_type="text/html"), Reason.NO_CODE, id="code_in_other_format"),
        pytest.param(reply_of(of_type="application/jsonp"), Reason.NO_CODE, id="not_quite_JSON"),
        pytest.param(reply_of(of_type="text/plain\r\n x"), Reason.BAD_TYPE, id="folded_type"),
        pytest.param(Reply(200, (), BODY), Reason.NO_CODE, id="no_type"),
        pytest.param(
            Reply(200, (("X-Response-Code", "0000"),), BODY), "0000", id="no_type_and_a_header"
        ),
        pytest.param(
            Reply(200, (JSON_TYPE, TEXT, ("X-Response-Code", "0000")), BODY),
            Reason.BAD_TYPE,
            id="two_types",
        ),
        pytest.param(
            reply_of(b"ok", ("X-Response-Code", " 0000\t"), of_type="text/plain"),
            "0000",
            id="header_with_blanks_around",
        ),
        pytest.param(
            reply_of(b"", ("x-response-code", "E500"), of_type="text/plain"), "E500", id="no_body"
        ),
        pytest.param(
            reply_of(b"ok", ("X-Response-Code", "0000, 0000"), of_type="text/plain"),
            Reason.UNKNOWN_CODE,
            id="two_codes_in_one_header",
        ),
        pytest.param(
            reply_of(
                b"", ("X-Response-Code", "0000"), ("X-Response-Code", "0000"), of_type="text/plain"
            ),
            Reason.CODES_DIFFER,
            id="two_header_codes",
        ),
        pytest.param(reply_of(BODY, ("X-Response-Code", "0000")), "0000", id="both_equal"),
        pytest.param(
            reply_of(BODY, ("X-Response-Code", "B201")), Reason.CODES_DIFFER, id="both_differ"
        ),
        pytest.param(
            reply_of(BODY, ("X-Response-Code", "Z999")), Reason.CODES_DIFFER, id="header_unknown"
        ),
        pytest.param(
            reply_of(b"{}", ("X-Response-Code", "0000")), Reason.NO_CODE, id="JSON_without_its_code"
        ),
        pytest.param(reply_of(BODY, ("X-GUID", GUID)), "0000", id="our_guid"),
        pytest.param(reply_of(BODY, ("X-GUID", "other")), Reason.OTHER_GUID, id="other_guid"),
        pytest.param(reply_of(BODY, ("X-GUID", "")), Reason.OTHER_GUID, id="empty_guid"),
        pytest.param(
            reply_of(BODY, ("X-GUID", GUID), ("X-GUID", "other")), Reason.OTHER_GUID, id="two_guids"
        ),
        pytest.param(
            reply_of(BODY, ("Content-Encoding", "Identity")), "0000", id="identity_encoding"
        ),
        *(
            pytest.param(reply_of(BODY, ("Content-Encoding", coding)), Reason.ENCODED, id=coding)
            for coding in ("gzip", "br", "identity, gzip", "aws-chunked")
        ),
    ],
)
def test_an_answer_is_judged(reply: Reply, expected: str) -> None:
    """Exactly one definite code in the core's own format counts; all else is a doubt."""
    found = judged(reply)
    assert (found if isinstance(found, Reason) else found.code) == expected


@pytest.mark.parametrize(
    ("framing", "reason"),
    [
        pytest.param([("Content-Length", "+30")], Reason.AMBIGUOUS_LENGTH, id="plus"),
        pytest.param([("Content-Length", "3_0")], Reason.AMBIGUOUS_LENGTH, id="underscore"),
        pytest.param([("Content-Length", "-1")], Reason.AMBIGUOUS_LENGTH, id="negative"),
        pytest.param([("Content-Length", "30, 30")], Reason.AMBIGUOUS_LENGTH, id="list"),
        pytest.param([("Content-Length", "")], Reason.AMBIGUOUS_LENGTH, id="empty"),
        pytest.param([("Content-Length", "\u00b2")], Reason.AMBIGUOUS_LENGTH, id="no_digit"),
        pytest.param(
            [("Content-Length", "30"), ("Content-Length", "2")], Reason.AMBIGUOUS_LENGTH, id="two"
        ),
        pytest.param([("Transfer-Encoding", "gzip")], Reason.AMBIGUOUS_LENGTH, id="gzip"),
        pytest.param(
            [("Transfer-Encoding", "gzip, chunked")], Reason.AMBIGUOUS_LENGTH, id="gzip_chunked"
        ),
        pytest.param(
            [("Transfer-Encoding", "chunked"), ("Content-Length", "30")],
            Reason.AMBIGUOUS_LENGTH,
            id="both",
        ),
        pytest.param([], Reason.NO_LENGTH, id="none"),
    ],
)
def test_an_end_that_can_be_read_in_two_ways_is_a_doubt(
    framing: list[tuple[str, str]], reason: Reason
) -> None:
    """Where two readers could see two bodies, none of them is the answer."""
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in [JSON_TYPE, *framing])]
    data = "\r\n".join([*lines, "", ""]).encode("latin-1") + BODY
    with pytest.raises(DoubtError) as caught:
        read(data)
    assert caught.value.reason is reason


def test_an_old_answer_in_chunks_is_a_doubt() -> None:
    """HTTP/1.0 has no chunks: what says both was put together by somebody in between."""
    data = chunked("200 OK", [BODY]).replace(b"HTTP/1.1", b"HTTP/1.0")
    with pytest.raises(DoubtError):
        read(data)


def test_no_content_with_a_length_of_its_own_is_a_doubt() -> None:
    """A 204 has no body, so that a declared length is somebody's mistake."""
    with pytest.raises(DoubtError):
        read(answer("204 No Content"))


def test_the_contract_explains_every_reason() -> None:
    """A reason that is logged is one that a core's owner can look up."""
    contract = Path(__file__).parents[2] / "docs" / "core-contract.md"
    told = set(re.findall(r"\| `(\w+)` \|", contract.read_text(encoding="utf-8")))
    assert {reason.value for reason in Reason} <= told


answers = st.builds(
    lambda code, text, chunk_bytes, header: _framed(
        json.dumps({"code": code, "text": text}).encode(), chunk_bytes, header
    ),
    st.sampled_from(["0000", "B201", "E500"]),
    st.text(max_size=40),
    st.integers(min_value=0, max_value=30),
    st.booleans(),
)


def _framed(body: bytes, chunk_bytes: int, header: bool) -> bytes:  # noqa: FBT001 (drawn values)
    """Return the answer in chunks of that size, or with its length for 0."""
    extra = [("X-GUID", GUID)] if header else []
    if chunk_bytes == 0:
        return answer("200 OK", body, *extra)
    chunks = [body[at : at + chunk_bytes] for at in range(0, len(body), chunk_bytes)]
    return chunked("200 OK", chunks, *extra)


@given(data=answers)
@settings(max_examples=40, deadline=None)
def test_an_answer_that_is_cut_anywhere_is_never_definite(data: bytes) -> None:
    """Whole it is definite; short of any number of bytes, its last included, it is not."""
    assert isinstance(judged(read(data)), Answer)
    for size in range(len(data)):
        with pytest.raises((EndedEarlyError, http.client.HTTPException)):
            read(data[:size])


@given(data=answers, at=st.integers(min_value=0), byte=st.integers(min_value=0, max_value=255))
@settings(max_examples=300, deadline=None)
def test_a_damaged_answer_never_breaks_the_judgement(data: bytes, at: int, byte: int) -> None:
    """Whatever one byte becomes, the outcome is an answer, a doubt or an error of reading."""
    place = at % len(data)
    damaged = data[:place] + bytes([byte]) + data[place + 1 :]
    try:
        found = judged(read(damaged))
    except (DoubtError, EndedEarlyError, http.client.HTTPException):
        return
    assert isinstance(found, Answer | Reason)
