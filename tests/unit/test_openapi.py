"""docs/openapi.yaml is OpenAPI; its routes, headers, fields and words are those of the code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from openapi_spec_validator import validate

from relayhub.guids import GUID_LENGTH_MAX, check_guid
from relayhub.http_event import CANCEL, STATUS, SUBMIT, Call, prefers_async
from relayhub.judgement import DoubtError, refuse_status
from relayhub.message import MalformedError, MessageRules, is_operation, read_submission
from relayhub.replies import of_code
from relayhub.states import NOT_KNOWN, TOLD, Code, Delivery, State, Told, Tri
from tests import openapi_kit
from tools import template

# What HTTP APIs answer by themselves: the authoriser, the limits, a dead function, no time.
GATEWAYS: Final = ("401", "403", "404", "429", "500", "502", "503", "504")
CORES: Final = {"0000": "Executed", "B2xx, E500": "Refused"}


def test_the_page_is_openapi() -> None:
    """Any tool can read it; no merge keys, which YAML has no longer."""
    validate(openapi_kit.document())
    text = openapi_kit.PAGE.read_text(encoding="utf-8")
    assert "<<" not in text
    assert "**No `code` in the answer" in text


def test_the_page_has_the_routes_of_the_template_and_the_code() -> None:
    """No path and no method more or less."""
    routes = {f"{method} {path}" for path, method, _ in openapi_kit.operations()}
    deployed = {
        each["Properties"]["RouteKey"]
        for each in template.load()["Resources"].values()
        if each["Type"] == "AWS::ApiGatewayV2::Route"
    }
    assert routes == {SUBMIT, STATUS, CANCEL} == deployed - {"$default"}


class Asked(Mapping[str, str]):
    """Headers that remember which of them were looked at."""

    def __init__(self, **values: str) -> None:
        self.names: set[str] = set()
        self._values = values

    def __getitem__(self, name: str) -> str:
        """Return the value, and remember the name."""
        self.names.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._values)


def test_the_page_has_every_header_that_is_read_and_no_other() -> None:
    """Beside the content type, which OpenAPI has elsewhere, and what the gateway reads."""
    asked = Asked()
    with pytest.raises(MalformedError):
        read_submission(
            headers=asked, body=b"{}", is_text=False, channel="atm", rules=MessageRules(), now_ms=0
        )
    named = b'{"guid":"G-1"}'
    read_submission(
        headers=asked, body=named, is_text=False, channel="atm", rules=MessageRules(), now_ms=0
    )
    prefers_async(Call(SUBMIT, "atm", asked, b"", is_text=False, guid=""))
    operation = openapi_kit.operation("/transactions", "POST")
    headers = {openapi_kit.resolved(each)["name"].lower() for each in operation["parameters"]}
    assert headers == asked.names - {"content-type"}


def pattern_faults(name: str, value: str) -> list[str]:
    """Return what the schema of a request's header has against the value."""
    schema = openapi_kit.at(f"#/components/parameters/{name}")["schema"]
    return openapi_kit.faults(schema, value)


@pytest.mark.parametrize(
    "guid",
    [
        "a",
        "G-1",
        "A.b_c:d-9",
        "x" * GUID_LENGTH_MAX,
        "",
        "-a",
        "a b",
        "é",
        "x" * 129,
        "!gate",
        "a/",
    ],
)
def test_the_page_knows_a_guid_as_the_code_does(guid: str) -> None:
    """What it lets through is taken, and what it does not is refused."""
    try:
        is_guid = check_guid(guid) == guid
    except MalformedError:
        is_guid = False
    assert (pattern_faults("Guid", guid) == []) is is_guid
    for spelt in (guid, f'"{guid}"'):
        assert (pattern_faults("IdempotencyKey", spelt) == []) is is_guid


@pytest.mark.parametrize("text", ["transfer", "a.b_c-9", "x" * 64, "", "x" * 65, "a b", "ä"])
def test_the_page_knows_an_operation_as_the_code_does(text: str) -> None:
    """The same alphabet and length."""
    assert (pattern_faults("Operation", text) == []) is is_operation(text)


def test_the_page_has_the_values_of_every_field() -> None:
    """States, deliveries, and the words of executed, resend and new_guid."""
    schemas = openapi_kit.document()["components"]["schemas"]
    fields = schemas["Document"]["properties"]
    assert set(schemas["State"]["enum"]) == set(State)
    used = [*TOLD, NOT_KNOWN]
    assert set(fields["executed"]["enum"]) == {each.executed for each in used}
    assert set(fields["resend"]["enum"]) == {each.resend for each in used}
    assert set(fields["new_guid"]["enum"]) == {each.new_guid for each in used}
    delivery = openapi_kit.at("#/components/parameters/Delivery")["schema"]
    assert set(delivery["enum"]) == set(Delivery)


def test_the_page_has_the_fields_of_the_document() -> None:
    """The list that the code makes, all of them required, with the status of an answer."""
    made = of_code(Code.E904, "G-1").document or {}
    document = openapi_kit.at("#/components/schemas/Document")
    assert set(document["required"]) == set(document["properties"]) == set(made) - {"status"}
    assert openapi_kit.at("#/components/schemas/Problem")["required"] == ["status"]


@pytest.mark.parametrize("told", [*TOLD, NOT_KNOWN], ids=lambda told: f"{told.label}-{told.status}")
def test_the_page_tells_of_each_code_what_the_table_tells(told: Told) -> None:
    """Executed, resend and new GUID, word for word."""
    name = CORES.get(told.label, told.label) or "NotKnown"
    words = openapi_kit.at(f"#/components/schemas/{name}")["properties"]
    assert {each: words[each]["const"] for each in ("executed", "resend", "new_guid")} == {
        "executed": told.executed,
        "resend": told.resend,
        "new_guid": told.new_guid,
    }
    code: dict[str, Any] = words["code"]
    if told.label in set(Code):
        assert code == {"const": told.label}


def test_a_code_that_is_no_longer_known_is_told_as_in_doubt() -> None:
    """The words of E901, under the code as it is stored."""
    known = openapi_kit.at("#/components/schemas/E901")["properties"]
    unknown = openapi_kit.at("#/components/schemas/NoLongerKnown")["properties"]
    assert unknown | {"code": known["code"]} == known
    for code in ("0000", "B201", "E500", "E909", "Z999", *Code):
        is_the_hubs = code in set(Code)
        schema = openapi_kit.at("#/components/schemas/CoreCode")
        assert bool(openapi_kit.faults(schema, code)) is is_the_hubs


def is_never_the_cores(status: int) -> bool:
    """Tell whether the status proves nothing of what the core did."""
    try:
        refuse_status(status)
    except DoubtError:
        return True
    return False


def test_the_cores_own_answer_is_written_down_where_it_can_come() -> None:
    """Never with a status that proves nothing; else with any body, and the hub's headers."""
    own = {"accepted-at", "attempt", "idempotent-replayed"}
    submit = ("/transactions", "POST")
    wrong = []
    for status in range(200, 600):
        said = openapi_kit.response(*submit, status) or {}
        is_said = "*/*" in said.get("content", {})
        is_headed = own <= openapi_kit.headers_of(*submit, status)
        if {is_said, is_headed} != {not is_never_the_cores(status)}:
            wrong.append(status)
    assert wrong == []


@pytest.mark.parametrize(
    ("path", "method"), [each[:2] for each in openapi_kit.operations()], ids=lambda text: text
)
@pytest.mark.parametrize("status", GATEWAYS)
def test_the_gateways_own_answers_are_written_down(path: str, method: str, status: str) -> None:
    """A message without a code, which means E901; a code in it would be somebody else's word."""
    assert status in openapi_kit.operation(path, method)["responses"]
    schema = openapi_kit.schema_of(path, method, int(status), "application/json")
    assert schema is not None
    assert openapi_kit.faults(schema, {"message": "Forbidden"}) == []
    assert openapi_kit.faults(schema, {"message": "Forbidden", "code": "E901"})


def test_an_answer_of_the_hubs_is_never_the_cores_and_the_cores_never_the_hubs() -> None:
    """The page tells them apart by what they bear."""
    core = openapi_kit.at("#/components/schemas/CoreAnswer")
    for code in Code:
        assert openapi_kit.faults(core, of_code(code, "G-1").document)
    assert openapi_kit.faults(core, {"code": "0000", "reference": "R1"}) == []
    assert (
        Tri.AFTER_CANCEL
        in openapi_kit.at("#/components/schemas/E902")["properties"]["new_guid"].values()
    )
