"""Nothing of a payload, a person or a credential comes out, but to the channel whose it is."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError, ReadTimeoutError

from functions.purger import handler as purger_function
from functions.relay import handler as http_function
from functions.relay import messages as messages_function
from functions.reprocessor import handler as reprocessor_function
from functions.resolver import handler as resolver_function
from relayhub import telemetry
from relayhub.core import Answered, Doubt, Finding, NotSent, SendOutcome
from relayhub.credentials import Credentials
from relayhub.ledger import Ledger
from relayhub.message import Answer
from relayhub.settings import SettingsError, load
from relayhub.states import Verdict
from tests.emulated import client, fails
from tests.environment import BUCKET, ENVIRONMENT, TABLE
from tests.events import get_event, post_event
from tests.integration.core_kit import FakeSecrets, answering, core_at, head, serving
from tests.maintenance import DAY_MS, items
from tests.markers import (
    ANSWER,
    BAD_BODIES,
    BAD_HEADERS,
    BODY,
    HEADERS,
    MARKS,
    REFUSAL,
    Outlets,
    marked,
    reasons_of,
    told_of,
)
from tests.message_events import (
    PREFER,
    kafka_event,
    kafka_record,
    put_aside,
    sqs_event,
    sqs_message,
)
from tests.plant import Works

FUNCTIONS: Final = (
    http_function,
    messages_function,
    resolver_function,
    reprocessor_function,
    purger_function,
)
MONEY: Final = tuple((name, f"/{name}") for name in ("amount", "currency", "reference"))
EXECUTED: Final = Answer(200, f"application/json; x={MARKS['type']}", ANSWER, "0000")
LARGE: Final = Answer(200, "application/json", ANSWER + b" " * 400_000, "0000")
REFUSED: Final = Answer(422, "application/json", REFUSAL, "B201")
OUTCOMES: Final[dict[str, SendOutcome]] = {
    "executed": Answered(EXECUTED),
    "large": Answered(LARGE),
    "refused": Answered(REFUSED),
    "doubt": Doubt("no_answer", aborted=True),
    "not_sent": NotSent("connect_refused"),
}
Event = dict[str, Any]


class Context:
    """What Lambda hands over beside the event."""

    function_name = "function"
    memory_limit_in_mb = 256
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:function"
    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        """Return a fresh function's time."""
        return 60_000


@dataclass
class Site:
    """The deployed functions around one world, and all that came out of them."""

    works: Works
    logged: io.StringIO
    out: Outlets = field(default_factory=Outlets)
    owned: list[bytes] = field(default_factory=list)  # Answers of the core, to their own channel.
    calls: int = 0

    def invoke(self, function: Any, event: Event) -> Any:
        """Call a function's entry as the platform does, and keep what it gives or raises."""
        self.calls += 1
        try:
            answer = function.handler(event, cast("LambdaContext", Context()))
        except Exception as error:  # noqa: BLE001 - the platform writes it into the log
            self.out.take("error", "".join(traceback.format_exception(error)[-1:]))
            return None
        if function is not http_function:
            self.out.take(f"{function.__name__} result", answer)
        return answer

    def http(self, event: Event) -> dict[str, Any]:
        """Send a marked request; keep its answer apart if it is the core's own."""
        answer = self.invoke(http_function, marked(event))
        body, headers = base64.b64decode(answer["body"]), answer["headers"]
        if "Accepted-At" in headers:
            self.owned.append(body)
        else:
            self.out.take("own document", body.decode())
            self.out.take("own headers", headers)
        return cast("dict[str, Any]", answer)

    def post(self, guid: str | None, body: bytes = BODY, **more: Any) -> dict[str, Any]:
        """Send a request."""
        return self.http(post_event(guid, body, **more))

    def cancel(self, guid: str, channel: str = "atm") -> None:
        """Cancel a GUID with a body that nobody asked for."""
        event = post_event(None, MARKS["cancel"].encode(), channel=channel)
        route = "POST /transactions/{guid}/cancel"
        parameters = {"pathParameters": {"guid": guid}}
        self.http(
            {**event, "routeKey": route, "rawPath": f"/transactions/{guid}/cancel"} | parameters
        )

    def get(self, guid: str, channel: str = "atm") -> None:
        """Ask for a GUID's status."""
        self.http(get_event(guid, channel))

    def sqs(self, guid: str | None, body: bytes = BODY, **attributes: str) -> None:
        """Deliver a message with marked attributes."""
        named = {"content-type": HEADERS["content-type"], "x-customer": MARKS["attribute"]}
        message = sqs_message(
            guid, body.decode(), sent_ms=self.works.clock(), attributes=named | attributes
        )
        self.invoke(messages_function, sqs_event(message))

    def kafka(self, guid: str | None, body: bytes = BODY) -> None:
        """Deliver a record with a marked key and headers."""
        mark = MARKS["kafka_header"]
        record = kafka_record(
            guid,
            body,
            key=MARKS["kafka_key"].encode(),
            sent_ms=self.works.clock(),
            headers=[(mark, mark.encode()), ("x-customer", mark.encode())],
        )
        self.invoke(messages_function, kafka_event([record]))

    def jobs(self, *findings: Finding) -> None:
        """Let an hour pass, and run every job with what waits for it."""
        for _ in range(4):
            self.works.clock.advance(900)
            self.works.core.findings[:] = findings * 40
            self.invoke(resolver_function, {})
            self.invoke(reprocessor_function, {})
            records = [
                {"messageId": f"m-{number}", "body": json.dumps(hint)}
                for number, hint in enumerate(self.works.hints())
            ]
            self.out.take("hints", records)
            self.invoke(reprocessor_function, {"Records": records})
        self.invoke(purger_function, {})

    def collect(self, capsys: pytest.CaptureFixture[str]) -> Outlets:
        """Return all that came out, what is stored and queued included."""
        written = capsys.readouterr()
        self.out.take("log", self.logged.getvalue())
        self.out.take("stdout: metrics", written.out)
        self.out.take("stderr", written.err)
        for item in items():
            self.out.take("row", told_of(item))
        self.out.take("rejects", reasons_of(put_aside(self.works)))
        found = client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
        self.out.take("object keys", [each["Key"] for each in found])
        for url in (self.works.intake_url, self.works.queue_url):
            messages = client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
            self.out.take("messages", [each["Body"] for each in messages.get("Messages", [])])
        return self.out


@pytest.fixture
def site(aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return the functions on one world, their logs as on the platform, every warning included."""
    del aws
    works = Works(money_fields=MONEY, shards=2, read_shards=2, scan_segments=1)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(telemetry.logger.registered_formatter)
    # The platform writes what any library logs from WARNING on.
    plain = logging.StreamHandler(stream)
    root, own = logging.getLogger(), logging.getLogger("relayhub")
    root.addHandler(plain)
    own.addHandler(handler)
    telemetry.metrics.clear_metrics()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of a run without a metric; Powertools says so.
        found = Site(works, stream)
        use(found, monkeypatch)
        yield found
    root.removeHandler(plain)
    own.removeHandler(handler)
    telemetry.metrics.clear_metrics()


def use(site: Site, monkeypatch: pytest.MonkeyPatch, **parts: Any) -> None:
    """Let every function stand on the site's hub, which writes the real log and metrics."""
    works = site.works
    ledger = Ledger(works.dynamo, TABLE, shards=2, on_step=telemetry.step, pause=lambda _: None)
    hub = replace(works.hub, note=telemetry.note, ledger=ledger, **parts)
    for function in FUNCTIONS:
        monkeypatch.setattr(function, "hub", hub)


def quiet(site: Site, capsys: pytest.CaptureFixture[str], lines_min: int) -> None:
    """Check that something came out, and none of the marks."""
    found = site.collect(capsys)
    assert len(site.logged.getvalue().splitlines()) >= lines_min
    assert found.leaks() == set()


def processed(answer: Answer = EXECUTED) -> Finding:
    """Return the finding that the core has this answer."""
    return Finding(Verdict.PROCESSED, answer, "")


# --- WHAT BECOMES OF A REQUEST -------------------------------------------------------------------


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_no_outcome_brings_anything_out(
    site: Site, capsys: pytest.CaptureFixture[str], outcome: SendOutcome
) -> None:
    """By every way in, with resends, another body, another channel, cancels, and the jobs."""

    def next_outcome() -> None:
        site.works.core.outcomes[:] = [outcome] * 3

    for guid, ask in (("G-1", site.post), ("G-2", site.sqs), ("G-3", site.kafka)):
        next_outcome()
        ask(guid)
        ask(guid)
        ask(guid, BODY + b" ")
    site.post("G-4", headers=PREFER)
    site.sqs("G-4")
    for guid in ("G-1", "G-2", "G-4", "G-5"):
        site.get(guid)
        site.post(guid, channel="app")
        site.get(guid, channel="app")
        site.cancel(guid, channel="app")
        site.cancel(guid)
    answer = outcome.answer if isinstance(outcome, Answered) else EXECUTED
    next_outcome()
    site.jobs(processed(answer))
    next_outcome()
    site.post("G-1")
    site.works.clock.ms += 500 * DAY_MS
    site.invoke(purger_function, {})
    quiet(site, capsys, 60)
    assert all(MARKS["answer"].encode() in body for body in site.owned)


def test_no_malformed_request_brings_anything_out(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong is said by name and place, never by what was sent."""
    for headers in BAD_HEADERS:
        site.post("G-1", headers=headers)
        site.sqs("G-1", BODY, **headers)
    for body in BAD_BODIES:
        site.post(None, body, is_text=True)
        site.sqs(None, body)
        site.kafka(None, body)
    lost = post_event("G-1") | {"body": f"{MARKS['malformed']}!", "isBase64Encoded": True}
    for event in (
        lost,
        post_event("G-1") | {"routeKey": "$default", "rawPath": f"/{MARKS['path']}"},
        get_event(f"{MARKS['path']} x"),
        get_event("G-1") | {"pathParameters": {"guid": f"{MARKS['path']}/"}},
        {**post_event("G-1"), "requestContext": {"authorizer": {"iam": {}}}},
    ):
        site.http(event)
    for event in (
        {"Records": [{"body": MARKS["malformed"]}]},
        {"eventSource": "aws:kafka", "records": {MARKS["kafka_key"]: [MARKS["malformed"]]}},
        {MARKS["malformed"]: MARKS["malformed"]},
        sqs_event(sqs_message("G-1", attributes={"content-type": b"\xff" + BODY})),
    ):
        site.invoke(messages_function, event)
    for text in (MARKS["hint"], json.dumps({"guid": f"{MARKS['hint']} "}), f'{{"{MARKS["hint"]}":'):
        records = [{"messageId": "m-1", "body": text}]
        site.invoke(reprocessor_function, {"Records": records})
    assert document_codes(site) >= {"E905"}
    quiet(site, capsys, 30)


def document_codes(site: Site) -> set[Any]:
    """Return the codes of the hub's own documents so far."""
    texts = [text for where, text in site.out.texts if where == "own document"]
    return {json.loads(text)["code"] for text in texts}


# --- FAULTS INSIDE -------------------------------------------------------------------------------

WORD: Final = MARKS["error"]


def _client_error(code: str, status: int) -> ClientError:
    meta = {"HTTPStatusCode": status, "HTTPHeaders": {WORD: WORD}}
    found: Any = {"Error": {"Code": code, "Message": WORD}, "ResponseMetadata": meta}
    return ClientError(found, WORD)


ERRORS: Final[dict[str, Exception]] = {
    "validation": _client_error("ValidationException", 400),
    "server": _client_error("InternalServerError", 500),
    "timeout": ReadTimeoutError(endpoint_url=WORD),
    "value": ValueError(WORD),
}


def hint(site: Site, guid: str) -> None:
    """Hand the reprocessor a hint of the GUID."""
    body = json.dumps({"guid": guid})
    site.invoke(reprocessor_function, {"Records": [{"messageId": "m-1", "body": body}]})


def large(site: Site, guid: str) -> None:
    """Send what has a large answer."""
    site.works.core.outcomes[:] = [Answered(LARGE)]
    site.post(guid)


def bury(site: Site, guid: str) -> None:
    """Purge what has a large answer."""
    large(site, guid)
    site.works.edit(guid, expires_at=1)
    for _ in range(2):  # The first may only end the round of one that was stopped.
        site.invoke(purger_function, {})


def unsent(site: Site, guid: str) -> None:
    """Send what the core never gets."""
    site.works.core.outcomes[:] = [NotSent("connect_refused")]
    site.post(guid)


Step = Callable[[Site, str], object]
POST: Final[Step] = lambda site, guid: site.post(guid)  # noqa: E731 - one of a table
ACCEPT: Final[Step] = lambda site, guid: site.post(guid, headers=PREFER)  # noqa: E731
MESSAGE: Final[Step] = lambda site, guid: site.sqs(guid)  # noqa: E731
REJECT: Final[Step] = lambda site, _: site.sqs(None, BAD_BODIES[0])  # noqa: E731
GET: Final[Step] = lambda site, guid: site.get(guid)  # noqa: E731
CANCEL: Final[Step] = lambda site, guid: site.cancel(guid)  # noqa: E731
RESOLVE: Final[Step] = lambda site, _: site.invoke(resolver_function, {})  # noqa: E731
SWEEP: Final[Step] = lambda site, _: site.invoke(reprocessor_function, {})  # noqa: E731
PURGE: Final[Step] = lambda site, _: site.invoke(purger_function, {})  # noqa: E731
# Who uses what of a service; each step has a GUID of its own but for the last of two.
USES: Final[dict[tuple[str, str], tuple[Step, ...]]] = {
    ("dynamo", "put_item"): (POST, ACCEPT, MESSAGE, CANCEL, PURGE),
    ("dynamo", "update_item"): (POST, MESSAGE),
    ("dynamo", "get_item"): (GET, hint, SWEEP, PURGE),
    ("dynamo", "query"): (RESOLVE, SWEEP),
    ("dynamo", "scan"): (PURGE,),
    ("dynamo", "delete_item"): (PURGE,),
    ("s3", "put_object"): (large,),
    ("s3", "get_object"): (POST,),
    ("s3", "delete_object"): (bury,),
    ("sqs", "send_message"): (unsent, ACCEPT, REJECT),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_no_fault_of_a_service_brings_anything_out(
    site: Site, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """An error's text may quote what it is about: only its kind and its place are told."""
    large(site, "G-get_object-0")
    for (service, operation), steps in USES.items():
        faults = getattr(site.works, service).faults[operation]
        for number, step in enumerate(steps):
            faults[:] = [fails(error)] * 2
            step(site, f"G-{operation}-{number}")
            assert len(faults) < 2, f"nobody used {operation}"
            faults.clear()
    quiet(site, capsys, 25)


def test_no_fault_of_the_code_brings_anything_out(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is raised in the middle of a call or an inquiry."""

    def break_down() -> None:
        raise RuntimeError(f"{WORD} {BODY!r}")

    for ask in (site.post, site.sqs, site.kafka):
        site.works.core.during[:] = [break_down]
        ask(f"G-{ask.__name__}")
    site.works.core.during_ask[:] = [break_down] * 10
    site.jobs(processed())
    quiet(site, capsys, 10)


# --- THE CORE AND ITS SECRET ---------------------------------------------------------------------

_HEAD: Final = MARKS["answer_header"]
_TEXT: Final = MARKS["answer"].encode()
RAW: Final[dict[str, bytes]] = {
    "executed": head("200 OK", ("X-Trace", _HEAD), ("Content-Length", str(len(ANSWER)))) + ANSWER,
    "unknown_code": head("200 OK", ("Content-Length", "24")) + b'{"code":"' + _TEXT + b'"}',
    "code_header": head("200 OK", ("X-Code", _HEAD), ("Content-Length", "15")) + b'{"code":"0000"}',
    "proxy_error": head(f"502 {_HEAD}", ("Content-Length", "11")) + _TEXT,
    "redirect": head("307 Moved", ("Location", f"http://{_HEAD}/"), ("Content-Length", "0")),
    "bad_length": head("200 OK", ("Content-Length", _HEAD)) + ANSWER,
    "cut": head("200 OK", ("Content-Length", "500")) + ANSWER,
    "encoding": head("200 OK", ("Content-Encoding", _HEAD), ("Content-Length", "11")) + _TEXT,
    "garbage": _TEXT + b"\r\n\r\n",
    "hung_up": b"",
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
def test_no_answer_of_a_core_and_nothing_of_its_secret_comes_out(
    site: Site,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    raw: bytes,
) -> None:
    """However the answer is broken, and whatever the core says of its own."""
    secret = {"headers": {"X-Api-Key": MARKS["secret"]}}
    with serving("plain", answering(raw)) as server:
        use(site, monkeypatch, core=core_at(server.url, secret=secret))
        site.post("G-1")
        site.post("G-1", channel="app")
        site.works.clock.advance(300)
        site.invoke(resolver_function, {})
    assert server.seen.requests[0].values("X-Api-Key") == [MARKS["secret"]]
    quiet(site, capsys, 3)


SECRETS: Final = (
    f'{{"headers":{{"X-Api-Key":"{MARKS["secret"]}\\n"}}}}',
    f'{{"headers":{{"{MARKS["secret"]} x":"v"}}}}',
    f'{{"{MARKS["secret"]}":1}}',
    f'{{"ca_pem":"{MARKS["secret"]}"}}',
    f'{{"client_cert_pem":"{MARKS["secret"]}","client_key_pem":"{MARKS["secret"]}"}}',
    MARKS["secret"],
)


def test_no_word_of_a_secret_that_cannot_be_used_comes_out(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E906 says what is wrong with it, to the log alone, and never what is in it."""
    for number, text in enumerate(SECRETS):
        core = core_at("http://127.0.0.1:9")
        monkeypatch.setattr(core, "_credentials", Credentials("arn:core", FakeSecrets(text)))
        use(site, monkeypatch, core=core)
        site.post(f"G-{number}")
        site.sqs(f"G-{number}-s")
        site.invoke(resolver_function, {})
    assert document_codes(site) == {"E906"}
    quiet(site, capsys, 12)


@pytest.mark.parametrize(
    "variables",
    [
        {"CORE_URL": f"http://user:{MARKS['secret']}@core.example"},
        {"CORE_URL": f"https://core.example/?key={MARKS['secret']}"},
    ],
    ids=["password", "query"],
)
def test_no_password_in_a_setting_comes_out_of_its_refusal(variables: dict[str, str]) -> None:
    """A function that does not start says why in its log."""
    with pytest.raises(SettingsError) as refused:
        load(ENVIRONMENT | variables)
    assert MARKS["secret"] not in str(refused.value)


def test_the_hub_adds_nothing_to_a_trace() -> None:
    """The platform traces its functions by itself; no code of the hub's has a tracer."""
    assert "aws_xray_sdk" not in sys.modules
    assert not hasattr(telemetry, "tracer")


# --- THE TEST ITSELF -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tell",
    [
        lambda mark: f"log of {mark}",
        lambda mark: json.dumps({"a": {"b": [mark]}}),
        lambda mark: repr({"B": f"x{mark}".encode()}),
        lambda mark: base64.b64encode(f'{{"a":"{mark}"}}'.encode()).decode(),
        lambda mark: mark.encode().hex(),
    ],
    ids=["plain", "json", "bytes", "base64", "hex"],
)
def test_a_mark_that_comes_out_is_found(tell: Callable[[str], str]) -> None:
    """In any of the forms in which bytes are written into a log."""
    for name, mark in MARKS.items():
        out = Outlets()
        out.take("log", tell(mark))
        assert (name, "log") in out.leaks()


def test_every_mark_is_planted(site: Site) -> None:
    """In the events, the answers, the secrets or the faults of this page."""
    del site
    planted = json.dumps(
        [
            marked(post_event("G-1", BODY, is_text=True)),
            [*map(str, BAD_HEADERS), *map(str, BAD_BODIES), *map(str, RAW.values())],
            [*SECRETS, *map(str, (ANSWER, HEADERS, *ERRORS.values()))],
        ]
    )
    elsewhere = {"cancel", "path", "attribute", "kafka_key", "kafka_header", "hint"}
    assert {name for name, mark in MARKS.items() if mark not in planted} == elsewhere
