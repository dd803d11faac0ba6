"""The bucket of large answers: byte for byte, or an error; never another's bytes."""

from __future__ import annotations

import hashlib

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from relayhub import answers
from relayhub.answers import AnswerStore, AnswerStoreError
from tests.emulated import Fault, FaultyClient, client, fails, make_bucket, refused
from tests.environment import BUCKET

BODY = "受付完了 ".encode("shift_jis") + b"\0 " * 9


@pytest.fixture
def s3(aws: None) -> FaultyClient:
    """Return a client of an empty bucket."""
    del aws
    make_bucket()
    return FaultyClient(client("s3"))


def test_an_answer_comes_back_byte_for_byte(s3: FaultyClient) -> None:
    """With the key, the length and the digest that the row keeps."""
    store = AnswerStore(s3, BUCKET)
    stored = store.put("G-1", "claim-1", BODY)
    digest = hashlib.sha256(BODY).hexdigest()
    assert stored == {"key": f"G-1/claim-1/{digest}", "bytes": len(BODY), "sha256": digest}
    assert store.get(stored) == BODY


def test_a_late_writer_never_overwrites_another_answers_object(s3: FaultyClient) -> None:
    """Another claim, or another answer of the same claim, has another key."""
    store = AnswerStore(s3, BUCKET)
    first = store.put("G-1", "claim-1", BODY)
    store.put("G-1", "claim-2", BODY + b"!")
    store.put("G-1", "claim-1", BODY + b"!")
    store.put("G-2", "claim-1", b"")
    assert store.get(first) == BODY
    assert client("s3").list_objects_v2(Bucket=BUCKET)["KeyCount"] == 4


FAULTS = [
    pytest.param(refused("AccessDenied", 403), id="denied"),
    pytest.param(refused("SlowDown", 503), id="slow_down"),
    pytest.param(fails(ReadTimeoutError(endpoint_url="http://x")), id="no_answer"),
    pytest.param(fails(EndpointConnectionError(endpoint_url="http://x")), id="no_connection"),
]


@pytest.mark.parametrize("operation", ["put_object", "get_object"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_kind_of_error_and_is_not_tried_again(
    s3: FaultyClient, operation: str, fault: Fault
) -> None:
    """The caller decides; the error names the kind, and no key, claim or byte."""
    store = AnswerStore(s3, BUCKET)
    stored = store.put("G-1", "claim-1", BODY)
    s3.calls.clear()
    s3.faults[operation].append(fault)
    with pytest.raises(AnswerStoreError, match=r"^not (stored|readable): \w+$"):
        store.put("G-1", "claim-1", BODY) if operation == "put_object" else store.get(stored)
    assert s3.calls == [operation]


@pytest.mark.parametrize("body", [BODY[:-1], BODY + b" ", b"", BODY.swapcase(), b"x" * len(BODY)])
def test_an_object_that_is_not_the_answer_is_not_read(s3: FaultyClient, body: bytes) -> None:
    """Length and digest must both be those of the row."""
    store = AnswerStore(s3, BUCKET)
    stored = store.put("G-1", "claim-1", BODY)
    client("s3").put_object(Bucket=BUCKET, Key=stored["key"], Body=body)
    with pytest.raises(AnswerStoreError, match="not the bytes"):
        store.get(stored)


def test_the_client_tries_once_and_not_long(aws: None) -> None:
    """Its worst case must fit between the core's answer and the function's end."""
    del aws
    config = answers.make_client().meta.config
    assert config.retries["total_max_attempts"] == 1
    assert (config.connect_timeout, config.read_timeout) == (0.5, 2.0)
