"""`list` and `stats`: what is open, how old it is, and how much is in doubt."""

from __future__ import annotations

import pytest

from relayhub.states import Event, Hold
from tests.integration.cli_kit import MONEY, Office, open_office, paid
from tests.maintenance import failed_row, put_rows
from tests.world import START_MS, World


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack and a person who looks after it."""
    return open_office(world)


def test_list_shows_the_rows_of_a_state_oldest_first(office: Office) -> None:
    """Held and parked ones among them, since they are in that state all the same."""
    world = office.world
    for guid in ("G-1", "G-2", "G-3"):
        world.doubt(guid)
        world.clock.advance(60)
    world.fail("F-1")
    office.act("hold", "G-2")
    told = office.terminal.json("list", "--state", "UNKNOWN")
    assert [each["guid"] for each in told["rows"]] == ["G-1", "G-2", "G-3"]
    assert told["found"] == 3
    text = office.run("list", "--state", "UNKNOWN").stdout
    assert "UNKNOWN held (operator)" in text
    assert "3 rows, 3 shown, oldest first" in text


@pytest.mark.parametrize(
    ("words", "guids"),
    [
        ((), ["D-1", "F-1", "F-2", "H-1"]),
        (("--state", "FAILED"), ["F-1", "F-2", "H-1"]),
        (("--state", "PARKED"), ["F-2"]),
        (("--state", "HELD"), ["D-1", "H-1"]),
        (("--state", "UNKNOWN"), ["D-1"]),
        (("--state", "SENT"), []),
        (("--older-than", "10m"), ["D-1"]),
        (("--channel", "app"), ["F-1"]),
        (("--limit", "1"), ["D-1"]),
    ],
    ids=" ".join,
)
def test_list_takes_what_it_is_asked_for(
    office: Office, words: tuple[str, ...], guids: list[str]
) -> None:
    """State, age, channel, number."""
    world = office.world
    world.doubt("D-1")
    # Restored rows in doubt are held, and stand where the resolver asks about them.
    world.move(Event.HELD, "D-1", by="operator", hold=Hold.RESTORED)
    world.clock.advance(600)
    world.fail("F-1", channel="app")
    world.fail("F-2")
    office.act("park", "F-2")
    world.fail("H-1")
    office.act("hold", "H-1")
    world.post("done")
    told = office.terminal.json("list", *words)
    assert [each["guid"] for each in told["rows"]] == guids


def test_more_keys_than_may_be_read_are_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Done in part: the exit code says so."""
    monkeypatch.setattr("cli.gather.KEYS_MAX", 2)
    put_rows(failed_row(f"F-{number}", START_MS) for number in range(3))
    result = office.run("list")
    assert result.exit_code == 3
    assert "2 rows, 2 shown" in result.stdout
    assert "the index holds more" in result.stderr


def test_a_row_that_nobody_can_read_hides_no_other(office: Office) -> None:
    """It is named, and the command is done in part."""
    office.world.fail("F-1")
    office.world.fail("F-2")
    office.world.edit("F-2", why="odd")
    for words in (("list",), ("stats",), ("stats", "--all")):
        result = office.run(*words)
        assert result.exit_code == 3, result.output
        assert "the row of F-2 cannot be read" in result.stderr
    assert "F-1" in office.run("list").stdout


def test_stats_counts_and_sums_up_what_is_in_doubt(office: Office) -> None:
    """By channel and currency, in exact decimals; what bears no amount is counted apart."""
    world = office.world
    world.deploy(money_fields=MONEY)
    world.doubt("D-1", body=paid("0.1", "EUR"))
    world.doubt("D-2", body=paid("0.2", "EUR"))
    world.clock.advance(3_600)
    world.doubt("D-3", body=paid("120000"))
    world.doubt("D-4", body=paid('"none"'))
    world.doubt("D-5", body=paid("5"), channel="app")
    office.act("hold", "D-5")
    world.fail("F-1", body=paid("7"))
    told = office.terminal.json("stats")
    assert told["in_doubt"] == [
        {"channel": "app", "currency": "JPY", "rows": 1, "sum": "5"},
        {"channel": "atm", "currency": "EUR", "rows": 2, "sum": "0.3"},
        {"channel": "atm", "currency": "JPY", "rows": 2, "sum": "120000"},
    ]
    assert told["uncounted"] == 1
    kinds = {(each["state"], each["stopped"]): each for each in told["rows"]}
    assert kinds["UNKNOWN", ""]["rows"] == 4
    assert (kinds["UNKNOWN", ""]["oldest_ms"], kinds["UNKNOWN", ""]["median_ms"]) == (3_600_000, 0)
    assert kinds["UNKNOWN", "held (operator)"]["code"] == "E901"
    assert {each["from_s"]: each["rows"] for each in told["ages"] if each["rows"]} == {
        0: 4,
        3_600: 2,
    }
    result = office.run("stats")
    assert "120,000" in result.stdout
    assert "████" in result.stdout
    assert "1 row in doubt bear" in result.stderr


def test_a_sum_is_exact_however_large_and_a_monstrous_amount_is_none(office: Office) -> None:
    """Neither rounds a total nor fills the screen."""
    world = office.world
    world.deploy(money_fields=MONEY)
    world.doubt("D-1", body=paid("12345678901234567890123456.01"))
    world.doubt("D-2", body=paid("0.0000001"))
    world.doubt("D-3", body=paid("1e999999"))
    told = office.terminal.json("stats")
    assert told["in_doubt"][0]["sum"] == "12345678901234567890123456.0100001"
    assert told["uncounted"] == 1


def test_stats_of_all_rows_scans_and_says_what_it_cost(office: Office) -> None:
    """The DONE rows too; the project's own rows are none."""
    office.world.post("done-1")
    office.world.fail("F-1")
    office.act("core", "close")
    told = office.terminal.json("stats", "--all")
    assert {(each["state"], each["code"], each["rows"]) for each in told["rows"]} == {
        ("DONE", "0000", 1),
        ("FAILED", "E902", 1),
    }
    assert told["scan"]["complete"]
    assert told["scan"]["read_units"] > 0
    assert "2 rows scanned for" in office.run("stats", "--all").stdout


def test_stats_of_an_empty_ledger(office: Office) -> None:
    """Nothing is open, which is good news."""
    assert office.run("stats").stdout == "no row is open\n"


def test_stats_says_first_what_is_switched_off(office: Office) -> None:
    """Whoever wonders why nothing moves sees it."""
    office.act("core", "close")
    office.act("hold-job", "resolver")
    first, second, *_ = office.run("stats").stdout.splitlines()
    assert first.startswith("the core is CLOSED: by role/Admin/alice since 2027-01-15T08:00:00")
    assert second.startswith("the resolver is HELD: by role/Admin/alice")
