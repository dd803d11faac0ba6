"""Bodies and their types: what is read as JSON, what stays opaque, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayhub.message import MalformedError, MessageRules, Submission, read_submission

JSON_TYPE = "application/json"
BINARY_TYPE = "application/octet-stream"
DECLARED = MessageRules(fingerprint_fields=("/amount",))
PLAIN = MessageRules()


def read(
    body: bytes,
    content_type: str | None = None,
    *,
    rules: MessageRules = PLAIN,
    is_text: bool = True,
) -> Submission:
    """Read a request that bears a key header."""
    headers = {"idempotency-key": "order-42"}
    if content_type is not None:
        headers["content-type"] = content_type
    return read_submission(
        headers=headers, body=body, is_text=is_text, channel="app", rules=rules, now_ms=0
    )


def test_a_body_at_the_limit_is_taken() -> None:
    """The limit itself is allowed."""
    assert read(b"x" * 256 * 1024, "text/plain").body == b"x" * 256 * 1024


def test_a_body_over_the_limit_is_too_large() -> None:
    """One byte more is refused as too large, with the limit in the sentence."""
    with pytest.raises(MalformedError, match="at most 262144 are taken") as refusal:
        read(b"x" * (256 * 1024 + 1), "text/plain")
    assert refusal.value.status == 413


def test_a_body_over_the_limit_is_not_read() -> None:
    """Its size is told before anything else that is wrong with it."""
    with pytest.raises(MalformedError) as refusal:
        read(b"[" * 20, JSON_TYPE, rules=MessageRules(body_bytes_max=10))
    assert refusal.value.status == 413


def test_an_empty_body_is_refused() -> None:
    """There is nothing to send to the core."""
    with pytest.raises(MalformedError, match="body is empty") as refusal:
        read(b"")
    assert refusal.value.status == 400


def test_a_mangled_text_is_refused() -> None:
    """Where the front put U+FFFD for bytes that it could not decode, the request is lost."""
    with pytest.raises(MalformedError, match="send it as application/octet-stream") as refusal:
        read("振込\ufffd".encode(), "text/plain; charset=shift_jis")
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("body", "is_text"),
    [
        pytest.param("a\ufffdb".encode(), False, id="the-character-in-bytes"),
        pytest.param("振込".encode("shift_jis"), False, id="shift-jis-as-bytes"),
        pytest.param(b"\\ufffd", True, id="escaped-in-text"),
        pytest.param("振込".encode(), True, id="good-text"),
    ],
)
def test_what_was_not_mangled_passes(*, body: bytes, is_text: bool) -> None:
    """Bytes that came as bytes are what the channel sent, whatever is in them."""
    assert read(body, BINARY_TYPE, is_text=is_text).body == body


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param(JSON_TYPE, id="json"),
        pytest.param("Application/JSON", id="other-case"),
        pytest.param("application/json;charset=utf-8", id="parameter"),
        pytest.param(" application/json ; charset=utf-8", id="spaces"),
        pytest.param("application/vnd.bank.v1+json", id="suffix"),
        pytest.param("application/problem+JSON; v=1", id="suffix-in-other-case"),
    ],
)
def test_a_json_body_must_be_json(content_type: str) -> None:
    """What calls itself JSON is read strictly, with a key header too."""
    with pytest.raises(MalformedError, match="same key twice"):
        read(b'{"amount":1,"amount":2}', content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param("text/plain", id="text"),
        pytest.param(BINARY_TYPE, id="bytes"),
        pytest.param("application/xml", id="xml"),
        pytest.param("application/jsonl", id="only-begins-like-json"),
        pytest.param("text/json5", id="another-json"),
        pytest.param("application/x; a=application/json", id="json-in-a-parameter"),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"guid":"another","guid":null}', id="looks-like-json"),
        pytest.param(b"\x00\xff\xef\xbf\xbd", id="any-bytes"),
    ],
)
def test_a_body_of_another_type_stays_unread(body: bytes, content_type: str) -> None:
    """With a key header a telegram in another form is passed on as it is."""
    submission = read(body, content_type, is_text=False)
    assert (submission.guid, submission.body) == ("order-42", body)
    assert submission.content_type == content_type


@pytest.mark.parametrize("content_type", [None, "text/plain", JSON_TYPE])
@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"amount=1", "not valid", id="no-json"),
        pytest.param(b'{"Amount":1}', "/amount", id="missing-field"),
        pytest.param(b'{"amount":1,"guid":"another"}', "differ", id="another-guid"),
    ],
)
def test_declared_fields_are_read_from_any_type(
    body: bytes, says: str, content_type: str | None
) -> None:
    """Where fields are declared a body without them cannot be compared."""
    with pytest.raises(MalformedError, match=says):
        read(body, content_type, rules=DECLARED)


@pytest.mark.parametrize("content_type", [None, "", " "])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"ISO8583 0200", id="telegram"),
        pytest.param(b"[1,", id="list"),
        pytest.param(b"\x00{", id="nul-in-front"),
        pytest.param(b"   ", id="white-space"),
        pytest.param(b"\xff\xfe", id="bytes"),
    ],
)
def test_a_body_without_a_type_is_opaque(body: bytes, content_type: str | None) -> None:
    """It goes to the core as bytes, and every attempt names the same type."""
    submission = read(body, content_type)
    assert (submission.body, submission.content_type) == (body, BINARY_TYPE)


@pytest.mark.parametrize("body", [b'{"a":1}', b' \t\r\n{"a":1}'])
def test_an_object_without_a_type_is_json(body: bytes) -> None:
    """What was read as JSON may be called JSON."""
    assert read(body).content_type == JSON_TYPE


@pytest.mark.parametrize(
    "body", [b"{", b'{"a":1,"a":2}', b' {"guid":"another"}', b"\n{\xff}", b"{1:0200}"]
)
def test_what_begins_like_an_object_must_be_one(body: bytes) -> None:
    """A guid in it could be overlooked otherwise; a named type other than JSON avoids it."""
    with pytest.raises(MalformedError):
        read(body)
    assert read(body, BINARY_TYPE).body == body


def test_a_body_read_for_its_declared_fields_is_json() -> None:
    """Without a type of its own it gets the one that it was read as; with one it keeps it."""
    assert read(b'{"amount":1}', rules=DECLARED).content_type == JSON_TYPE
    assert read(b'{"amount":1}', "text/plain", rules=DECLARED).content_type == "text/plain"


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param("text/plain", id="plain"),
        pytest.param('multipart/mixed; boundary="a b,c"', id="quoted-parameter"),
        pytest.param("text/plain;" + "x" * 189, id="200-characters"),
    ],
)
def test_a_content_type_is_kept_as_it_came(content_type: str) -> None:
    """The core sees what the channel said."""
    assert read(b"x", content_type).content_type == content_type


@pytest.mark.parametrize(
    ("content_type", "says"),
    [
        pytest.param("text/plain;" + "x" * 190, "longer than 200", id="201-characters"),
        pytest.param("text/plain\r\nX-GUID: a", "not one media type", id="header-injection"),
        pytest.param("text/plain\n", "not one media type", id="line-feed-at-the-end"),
        pytest.param("text/plain; a=\r", "not one media type", id="carriage-return"),
        pytest.param("text/plain; a=é", "not one media type", id="non-ascii"),
        pytest.param("text/plain; a=\x00", "not one media type", id="nul"),
        pytest.param("text/plain; a=\x7f", "not one media type", id="delete"),
        pytest.param("json", "not one media type", id="no-slash"),
        pytest.param("/json", "not one media type", id="nothing-before-the-slash"),
        pytest.param("text/", "not one media type", id="nothing-after-the-slash"),
        pytest.param("text/plain, application/json", "not one media type", id="two"),
        pytest.param("; charset=utf-8", "not one media type", id="parameter-alone"),
    ],
)
def test_a_bad_content_type_is_refused(content_type: str, says: str) -> None:
    """It is stored and sent to the core in a header, so it must be one media type."""
    with pytest.raises(MalformedError, match=says) as refusal:
        read(b'{"amount":1}', content_type)
    assert "Content-Type" in str(refusal.value)


def test_no_refusal_repeats_the_payload() -> None:
    """Account data in a bad request does not get into answers and logs."""
    secret = "4111111111111111"
    bodies = [f'{{"a":"{secret}",}}', f'{{"guid":"{secret}!"}}', f'{{"{secret}":1,"{secret}":2}}']
    for body in bodies:
        with pytest.raises(MalformedError) as refusal:
            read(body.encode(), JSON_TYPE)
        assert secret not in str(refusal.value)


HEADER_NAMES = ["idempotency-key", "content-type", "x-operation", "valid-until", "delivery"]
KNOWN = ["a", '"a"', "a,b", JSON_TYPE, "text/plain", "deferred", "2026-11-29T19:10:59Z", "", '"']
ANY_TEXT = st.text(st.characters(), max_size=40)
HEADERS = st.dictionaries(st.sampled_from(HEADER_NAMES), st.sampled_from(KNOWN) | ANY_TEXT)
BODY_PIECES = [b"{", b"}", b"[", b'"guid":', b'"a"', b'"amount":', b"1", b",", b" ", b"\\", b"\xff"]
BODIES = st.binary(max_size=60) | st.lists(st.sampled_from(BODY_PIECES), max_size=20).map(b"".join)


def outcome(
    headers: dict[str, str], body: bytes, rules: MessageRules, *, is_text: bool
) -> Submission | tuple[int, str]:
    """Return what the request was read as, or the status and sentence that refused it."""
    try:
        return read_submission(
            headers=headers, body=body, is_text=is_text, channel="app", rules=rules, now_ms=10**12
        )
    except MalformedError as refusal:
        return refusal.status, str(refusal)


@given(
    headers=HEADERS, body=BODIES, is_text=st.booleans(), rules=st.sampled_from([PLAIN, DECLARED])
)
@settings(deadline=None, max_examples=500)
def test_any_request_is_read_or_malformed(
    *, headers: dict[str, str], body: bytes, is_text: bool, rules: MessageRules
) -> None:
    """Nothing that a channel sends fails in another way, and the same input reads the same."""
    first = outcome(headers, body, rules, is_text=is_text)
    assert outcome(dict(headers), bytes(body), rules, is_text=is_text) == first
    if isinstance(first, Submission):
        assert first.body == body
        assert first.content_type.isprintable()
    else:
        assert first[0] in {400, 413}
        assert first[1].isascii()
