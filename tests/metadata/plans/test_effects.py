"""What changes of settings do in the control plane: plans name it, and decide without waiting for anything."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

import pytest

import strandline.metadata.plans
from strandline.config import Settings
from strandline.errors import InvalidConfig, InvalidRequest, RequestTimedOut, StrandlineError
from strandline.metadata import EMPTY_IMAGE, ConfigResource, MetadataImage
from strandline.metadata.delta import apply_records
from strandline.metadata.effects import (
    AbortSwitch,
    Check,
    CheckTiering,
    CheckUncleanDefault,
    CheckUncleanElections,
    Effect,
    RepeatSwitch,
    RequestSwitch,
)
from strandline.metadata.plans.configs import ConfigPlanner
from strandline.metadata.plans.diskless_switch import CheckedTopic
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord
from strandline.model import NO_LEADER
from tests.metadata.switching import ALL_BROKERS, set_to, topic_resource

T, OTHER = UUID(int=1), UUID(int=2)
TIERED = {"remote.storage.enable": "true"}
DISKLESS = {"diskless.enable": "true"}
UNCLEAN = {"unclean.leader.election.enable": "true"}
PLANNER = ConfigPlanner(rules=ConfigRules(Settings.from_properties({"remote.log.storage.system.enable": "true"})))


def image_with(configs: Mapping[str, str], *, leader: int = 1) -> MetadataImage:
    """A topic `t` with two partitions and these settings."""
    records: list[MetadataRecord] = [TopicRecord(name="t", topic_id=T)]
    records += [
        PartitionRecord(topic_id=T, partition=number, replicas=(1,), isr=(1,), leader=leader) for number in range(2)
    ]
    records += [ConfigRecord(resource=topic_resource("t"), key=key, value=value) for key, value in configs.items()]
    return apply_records(EMPTY_IMAGE, list(enumerate(records))).new


def effects_of(
    image: MetadataImage, values: dict[str, str | None], resource: str | ConfigResource = "t"
) -> Sequence[Effect]:
    checked = CheckedTopic(T, is_tiered=True)
    return PLANNER.plan_together(image, set_to(resource, values), checked).effects


def names(effects: Sequence[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def test_a_topic_that_becomes_diskless_has_its_switch_requested() -> None:
    (effect,) = effects_of(image_with(TIERED), {**DISKLESS})
    assert effect == RequestSwitch(topic_id=T, topic="t", partitions=2)


@pytest.mark.parametrize("value", ["false", None])
def test_a_topic_that_stays_classic_after_all_has_its_switch_aborted(value: str | None) -> None:
    (effect,) = effects_of(image_with({**TIERED, **DISKLESS}), {"diskless.enable": value})
    assert effect == AbortSwitch(topic_id=T, topic="t")


@pytest.mark.parametrize(
    ("before", "values", "expected"),
    [
        (TIERED, {"retention.ms": "1"}, []),
        (TIERED, UNCLEAN, []),
        ({**TIERED, **DISKLESS}, {"retention.ms": "1"}, []),
        ({**TIERED, **DISKLESS}, DISKLESS, ["RepeatSwitch"]),
        ({**TIERED, **DISKLESS}, UNCLEAN, ["CheckUncleanElections"]),
        ({**TIERED, **DISKLESS, **UNCLEAN}, UNCLEAN, []),
        (DISKLESS, {**UNCLEAN, **TIERED}, ["CheckUncleanElections", "CheckTiering"]),
        (DISKLESS, {**TIERED, **DISKLESS}, ["CheckTiering", "RepeatSwitch"]),
    ],
)
def test_the_control_plane_is_asked_about_nothing_else(
    before: Mapping[str, str], values: dict[str, str | None], expected: list[str]
) -> None:
    assert names(effects_of(image_with(before), values)) == expected


def test_a_repeated_switch_knows_what_would_keep_it_from_starting() -> None:
    settings = {**TIERED, **DISKLESS}
    (fit,), (unfit,) = (
        effects_of(image_with(settings), {**DISKLESS}),
        effects_of(image_with(settings, leader=NO_LEADER), {**DISKLESS}),
    )
    assert isinstance(fit, RepeatSwitch)
    assert isinstance(unfit, RepeatSwitch)
    assert fit.obstacle is None
    assert "has no leader" in str(unfit.obstacle)


def test_unclean_elections_by_default_are_checked_with_the_topics_as_they_are() -> None:
    image = image_with({**TIERED, **DISKLESS})
    (effect,) = effects_of(image, {**UNCLEAN}, ALL_BROKERS)
    assert effect == CheckUncleanDefault(image)


def test_a_change_that_the_control_plane_has_to_hear_of_is_not_made_with_others() -> None:
    image = image_with({**TIERED, **DISKLESS})
    plan = PLANNER.plan(image, [set_to("t", {**UNCLEAN})])
    assert (list(plan.records), list(plan.effects)) == ([], [])
    assert isinstance(plan.answer[0], RequestTimedOut)


@pytest.mark.parametrize(
    ("check", "switching", "refusal"),
    [
        (CheckUncleanElections(topic_id=T, topic="t"), [OTHER, T], InvalidConfig),
        (CheckUncleanElections(topic_id=T, topic="t"), [OTHER], None),
        (CheckTiering(topic_id=T, topic="t"), [OTHER], InvalidConfig),
        (CheckTiering(topic_id=T, topic="t"), [OTHER, T], None),
        (CheckUncleanDefault(image_with(TIERED)), [OTHER, T], InvalidRequest),
        (CheckUncleanDefault(image_with(TIERED)), [OTHER], None),
        (CheckUncleanDefault(image_with({"unclean.leader.election.enable": "false"})), [T], None),
    ],
)
def test_what_the_control_plane_has_refuses_a_change_or_does_not(
    check: Check, switching: list[UUID], refusal: type[StrandlineError] | None
) -> None:
    if refusal is None:
        check.check(switching)
    else:
        with pytest.raises(refusal, match="cannot become true"):
            check.check(switching)


def test_no_plan_waits() -> None:
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    (directory,) = strandline.metadata.plans.__path__
    modules = sorted(Path(directory).glob("*.py"))
    assert len(modules) > 10
    found = [
        f"{module.name}:{node.lineno}"
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, waits)
    ]
    assert found == []
