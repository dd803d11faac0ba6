"""The only S3 module: answers too large for their row, kept and read byte for byte.

The key holds the claim and the digest, so that a late writer never overwrites the stored answer's
object. Length and digest stand in the row; an object that does not match them is not replayed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

# An answer has at most 4 MiB; inside a Region that takes well under a second.
_CONFIG: Final = Config(
    connect_timeout=0.5,
    read_timeout=2.0,
    retries={"mode": "standard", "total_max_attempts": 1},
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)


def make_client() -> Any:
    """Return an S3 client with every option that matters stated."""
    return boto3.client("s3", config=_CONFIG)


class AnswerStoreError(Exception):
    """The answer could not be written, or what is there is not the answer."""


class AnswerStore:
    """The bucket with the answers that do not fit into a row."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, guid: str, claim_id: str, body: bytes) -> dict[str, Any]:
        """Store the answer and return what the row keeps of it: key, bytes, sha256.

        Raises AnswerStoreError if it cannot be stored.
        """
        digest = hashlib.sha256(body).hexdigest()
        key = f"{guid}/{claim_id}/{digest}"
        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body)
        except (BotoCoreError, ClientError) as error:
            raise AnswerStoreError(f"not stored: {type(error).__name__}") from error
        return {"key": key, "bytes": len(body), "sha256": digest}

    def remove(self, stored: Mapping[str, Any]) -> None:
        """Remove the answer's object, whose row is gone. Raises AnswerStoreError if it may stay."""
        try:
            self._client.delete_object(Bucket=self._bucket, Key=stored["key"])
        except (BotoCoreError, ClientError) as error:
            raise AnswerStoreError(f"not removed: {type(error).__name__}") from error

    def get(self, stored: Mapping[str, Any]) -> bytes:
        """Return the answer's bytes. Raises AnswerStoreError if they are not there unharmed."""
        try:
            response = self._client.get_object(Bucket=self._bucket, Key=stored["key"])
            body = bytes(response["Body"].read())
        except (BotoCoreError, ClientError, OSError) as error:
            raise AnswerStoreError(f"not readable: {type(error).__name__}") from error
        if len(body) != stored["bytes"] or hashlib.sha256(body).hexdigest() != stored["sha256"]:
            raise AnswerStoreError("not the bytes that were stored")
        return body
