"""A run's plan: it follows from its seed, and has what it must show."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from microburst.rules import from_dict  # type: ignore[import-untyped]

from local.core_rules import read_settings
from tests.chaos import weather
from tests.chaos.clients import spelt
from tests.chaos.plan import KILLS, Does, Plan, Strike, Way, draw, held_count

WHOLE: Final = 20_000


@pytest.fixture(scope="module")
def whole() -> Plan:
    """Return the plan of a whole run."""
    return draw(WHOLE, 7)


def test_the_same_seed_gives_the_same_plan() -> None:
    """GUIDs, steps and strikes are the same, and others with another seed."""
    first, again, other = draw(300, 1), draw(300, 1), draw(300, 2)
    assert first == again
    assert {act.guid for act in first.acts}.isdisjoint(act.guid for act in other.acts)
    assert first.strikes != other.strikes


def test_every_act_has_a_guid_of_its_own_and_is_sent(whole: Plan) -> None:
    """As many GUIDs as acts, and each of them in a step."""
    assert len(whole.by_guid) == WHOLE
    begun = {Does.POST, Does.MESSAGES}
    assert whole.by_guid.keys() == {
        act.guid for step in whole.steps if step.does in begun for act in step.acts
    }


def test_a_fifth_comes_by_the_queue_or_is_accepted_for_later(whole: Plan) -> None:
    """Both ways have their share, so that neither is an exception."""
    ways = Counter(act.way for act in whole.acts)
    assert 0.18 < (ways[Way.ASYNC] + ways[Way.MESSAGE]) / WHOLE < 0.22
    assert min(ways[Way.ASYNC], ways[Way.MESSAGE]) > WHOLE * 0.08


def test_a_whole_run_plans_more_kills_than_it_must_show(whole: Plan) -> None:
    """Some kills meet no process, and some of the held requests end before theirs."""
    struck = Counter(each.strike for each in whole.strikes)
    held = [act for act in whole.acts if act.guid.startswith(weather.HELD_MARK)]
    assert sum(struck[kill] for kill in KILLS) >= 200
    assert len(held) >= held_count(WHOLE) >= 75
    assert {each.prefix for each in weather.HELD} == {
        next(known.prefix for known in weather.HELD if act.guid.startswith(known.prefix))
        for act in held
    }


def test_each_strike_comes_in_a_small_run_too() -> None:
    """All but the purger's kill, which has its own hour."""
    assert set(Strike) - {each.strike for each in draw(200, 3).strikes} <= {Strike.KILL_PURGER}


def test_duplicates_come_at_once_and_late(whole: Plan) -> None:
    """Copies side by side, resends of what is done, messages that are delivered again."""
    posts = Counter(act.guid for step in whole.steps if step.does is Does.POST for act in step.acts)
    assert sum(count > 1 for count in posts.values()) > WHOLE * 0.03
    steps = Counter(step.does for step in whole.steps)
    assert steps[Does.AGAIN] > WHOLE * 0.08
    messages = [act.guid for s in whole.steps if s.does is Does.MESSAGES for act in s.acts]
    assert len(messages) > len(set(messages)) * 1.1


def test_nobody_meddles_with_a_held_request(whole: Plan) -> None:
    """Its first answer says whether its sender was killed, so nobody cancels or takes it."""
    meddling = {Does.CANCEL, Does.OTHER}
    acts = [act for step in whole.steps if step.does in meddling for act in step.acts]
    assert acts
    assert not [act for act in acts if act.guid.startswith(weather.HELD_MARK)]


def test_a_resend_may_spell_a_uuid_in_capitals(whole: Plan) -> None:
    """It is the same GUID; a name of the channel's own is never changed."""
    spellings = {spelt(act, 1) for act in whole.acts[:200]}
    capitals = {each for each in spellings if each.isupper()}
    assert capitals
    assert {each.lower() for each in spellings} == {act.guid for act in whole.acts[:200]}


def test_the_core_takes_its_rules() -> None:
    """Every rule means something to its kind, with and without a fault of the port."""
    for port in ("", "refuse", "accept_nothing"):
        assert read_settings(weather.core_rules(5, port, weather.PAUSE_S)).rules


def test_the_core_keeps_its_promise_of_the_longest_time() -> None:
    """What a request may wait for, and the inquiry's lag, fit into it with room to spare."""
    rules = [each for each in weather.core_rules(1) if each["kind"] in ("execute_late", "slow")]
    stale = [each for each in weather.core_rules(1) if each["kind"] == "inquiry_stale"]
    longest = max(each["seconds"] for each in rules) + max(each["seconds"] for each in stale)
    assert longest + weather.PAUSE_S + 1 < weather.CORE_LONGEST_S


@pytest.mark.parametrize("storm", [False, True], ids=["calm", "storm"])
def test_the_proxy_takes_its_rules(*, storm: bool) -> None:
    """And drops enough replies of claims and outcomes for what a whole run must show."""
    rules = [from_dict(each) for each in weather.proxy_rules(WHOLE, storm=storm)]
    dropped = [rule for rule in rules if rule.response == {"abort_bytes": 0}]
    writes = [rule for rule in dropped if rule.operation in {"PutItem", "UpdateItem"}]
    assert [rule.operation for rule in writes] == ["PutItem", "UpdateItem"]
    assert sum(rule.probability for rule in writes) * WHOLE >= 800


def test_a_claim_is_never_told_as_open_and_then_not_there() -> None:
    """No fault of a put leaves it in doubt and unapplied: it would be E901 without a row."""
    faults = [each for each in weather.proxy_rules(WHOLE) if each["operation"] == "PutItem"]
    assert not [each for each in faults if each.get("reset") or "timeout_ms" in each]
    codes = {each["error"]["code"] for each in faults if "error" in each}
    assert codes == {"ProvisionedThroughputExceededException"}


def test_the_proxys_log_is_added_up_without_counting_twice() -> None:
    """Each reading has the newest entries, those of the last one among them."""
    log = weather.FiredLog()
    first = {"ts": 1.0, "action": "response:abort", "operation": "PutItem"}
    second = {"ts": 2.0, "action": "latency:1500ms", "operation": "PutItem"}
    third = {"ts": 3.0, "action": "response:abort", "operation": "UpdateItem"}
    log.take([first, second])
    log.take([first, second, third])
    log.take([])
    assert log.dropped() == {"PutItem": 1, "UpdateItem": 1}
    assert log.others() == {"latency": 1}
