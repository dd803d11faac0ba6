"""What an error of AWS means to the person at the terminal: one sentence, with what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
)

_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_NOT_KNOWN: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_BUSY: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)


_PERMISSIONS: Final = "docs/cli.md lists the permissions that a command needs"


@dataclass(frozen=True)
class _Sentence:
    kinds: tuple[type[BotoCoreError], ...]
    text: str


_SENTENCES: Final = (
    _Sentence(
        (NoCredentialsError, PartialCredentialsError),
        "no AWS credentials were found: name a profile by --profile, or set AWS_ACCESS_KEY_ID and"
        " AWS_SECRET_ACCESS_KEY",
    ),
    _Sentence(
        (ProfileNotFound,), "{said}: `aws configure list-profiles` names those that there are"
    ),
    _Sentence(
        (NoRegionError,), "no AWS region is set: name it by --region, or set AWS_DEFAULT_REGION"
    ),
    _Sentence(
        (CredentialRetrievalError, SSOError, TokenRetrievalError),
        "the credentials cannot be renewed ({said}): log in to AWS again",
    ),
    _Sentence(
        (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError),
        "{said}: is --endpoint-url right and the local stack up (`make up`), or this machine"
        " offline?",
    ),
    _Sentence(
        (ConnectionClosedError, ReadTimeoutError),
        "{doing} got no answer ({said}): what was asked for may have happened, or may still;"
        " it is safe to ask again",
    ),
)


def explain(error: BotoCoreError | ClientError, doing: str) -> str:
    """Return the sentence; `doing` names what was tried, for errors that do not say so."""
    if isinstance(error, ClientError):
        return _refusal(error)
    for sentence in _SENTENCES:
        if isinstance(error, sentence.kinds):
            return sentence.text.format(said=_one_line(error), doing=doing)
    return f"{doing} failed: {_one_line(error)}"


def explain_code(code: str) -> str:
    """Return what the ledger's own word for a failure means: a code of AWS, or an error's name."""
    if code in _DENIED:
        return f"{code}; {_PERMISSIONS}"
    if code in _NOT_KNOWN or code in {"NoCredentialsError", "CredentialRetrievalError"}:
        return f"AWS does not accept these credentials ({code}): log in again, or name a --profile"
    return f"{code}; it is busy: try again in a minute" if code in _BUSY else code


def is_bad_usage(error: BotoCoreError) -> bool:
    """Tell whether the options, and not AWS, are at fault."""
    return isinstance(error, ProfileNotFound | NoRegionError | InvalidRegionError)


def is_no_such_stack(error: BotoCoreError | ClientError) -> bool:
    """Tell whether CloudFormation says that it knows no such stack."""
    if not isinstance(error, ClientError):
        return False
    told = error.response["Error"]
    return told["Code"] == "ValidationError" and "does not exist" in told.get("Message", "")


def _refusal(error: ClientError) -> str:
    code = error.response["Error"]["Code"]
    said = f"{error.operation_name}: {code}: {error.response['Error'].get('Message', '')}"
    said = " ".join(said.split()).rstrip(".: ")
    if code in _DENIED:
        return f"{said}; {_PERMISSIONS}"
    if code in _NOT_KNOWN:
        return f"AWS does not accept these credentials ({said}): log in again, or name a --profile"
    if code in _BUSY:
        return f"{said}; it is busy, perhaps with a run of the schedule: try again in a minute"
    return f"AWS answered with an error: {said}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".: ")
