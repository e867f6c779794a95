"""When a topic that exists may become diskless, and when it may go back: each refusal leaves everything as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from strandline.errors import InvalidConfig, InvalidRequest, KafkaStorageError, StrandlineError
from strandline.metadata.effects import DISKLESS_FLAG
from strandline.metadata.plans.configs import ConfigWish
from strandline.metadata.plans.diskless_switch import with_kept_flags
from strandline.model import GROUP_METADATA_TOPIC
from tests.metadata.cluster import Cluster, open_cluster
from tests.metadata.switching import ALL_BROKERS, EMPTY, KnownContents, ask, replaced_by, requested, set_to

ON, OFF = {DISKLESS_FLAG: "true"}, {DISKLESS_FLAG: "false"}
TIERED = {"remote.storage.enable": "true"}
UNCLEAN = {"unclean.leader.election.enable": "true"}
TIERING = {"remote.log.storage.system.enable": "true"}
RECORDS = KnownContents(non_empty=(0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A topic that cannot become diskless."""

    says: str
    properties: Mapping[str, str] = field(default_factory=lambda: TIERING)
    configs: Mapping[str, str] = field(default_factory=lambda: TIERED)
    checks: KnownContents = EMPTY
    error: type[StrandlineError] = InvalidConfig
    topic: str = "t"
    replicas: tuple[int, ...] = (1,)
    fenced: int | None = None


ROWS = {
    "an internal topic": Row(
        topic=GROUP_METADATA_TOPIC,
        configs={},
        says="it is an internal topic, which the brokers keep on their disks.",
    ),
    "compacted": Row(configs={"cleanup.policy": "compact"}, says="Set cleanup.policy=delete first."),
    "compacted and deleted": Row(configs={"cleanup.policy": "compact,delete"}, says="the topic is compacted"),
    "diskless not configured": Row(
        properties={**TIERING, "diskless.storage.system.enable": "false"},
        says="diskless.storage.system.enable is false on the broker. Set it to true on every broker first.",
    ),
    "not tiered and not empty": Row(
        configs={},
        checks=RECORDS,
        says="partition 0 has records, and they are not tiered. Set remote.storage.enable",
    ),
    "tiered storage not operational": Row(
        checks=KnownContents(non_empty=(1,), problem="It is away."),
        error=KafkaStorageError,
        says="It is away. Partition 1 has records that have to be copied to remote storage.",
    ),
    "object storage never worked": Row(
        checks=KnownContents(refusal=InvalidConfig("diskless.enable=true cannot be used for t: no bucket.")),
        says="no bucket.",
    ),
    "a partition without leader": Row(fenced=1, configs={}, says="partition 0 has no leader. Try again when its"),
    "several replicas": Row(replicas=(1, 2), configs={}, says="it has 2 replicas, and only a topic with one"),
    "unclean election on for the topic": Row(
        configs={**TIERED, **UNCLEAN}, says="Set unclean.leader.election.enable=false on the topic first."
    ),
    "unclean election on by the default of the broker": Row(
        properties={**TIERING, **UNCLEAN}, says="unclean.leader.election.enable is true for the topic"
    ),
    "copying to remote storage disabled": Row(
        configs={**TIERED, "remote.log.copy.disable": "true"}, says="Set remote.log.copy.disable=false first."
    ),
}


@pytest.mark.parametrize("validate_only", [False, True], ids=["for good", "validated"])
@pytest.mark.parametrize("by", ["IncrementalAlterConfigs", "AlterConfigs"])
@pytest.mark.parametrize("name", ROWS)
async def test_a_topic_does_not_become_diskless(name: str, by: str, *, validate_only: bool) -> None:
    row = ROWS[name]
    async with open_cluster(brokers=(1, 2), properties=row.properties) as cluster:
        await cluster.create(row.topic, [row.replicas, row.replicas], row.configs)
        if row.fenced is not None:
            await cluster.beat(row.fenced, want_fence=True)
        image = cluster.image
        wish: ConfigWish = set_to(row.topic, {**ON})
        if by == "AlterConfigs":
            wish = replaced_by(row.topic, {**row.configs, **ON})
        answer = await ask(cluster, wish, row.checks, validate_only=validate_only)
        assert type(answer) is row.error
        assert row.says in str(answer)
        if row.checks.refusal is None:
            assert str(answer).startswith(f"diskless.enable of {row.topic} cannot become true: ")
        assert cluster.image is image
        assert await requested(cluster) == []


async def test_unclean_election_by_the_default_of_the_cluster_counts_too() -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await cluster.create("t", configs=TIERED)
        assert await ask(cluster, set_to(ALL_BROKERS, {**UNCLEAN})) is None
        assert "Set unclean.leader.election.enable=false" in str(await ask(cluster, set_to("t", {**ON})))
        assert await ask(cluster, set_to("t", {**ON, "unclean.leader.election.enable": "false"})) is None


@pytest.mark.parametrize(
    ("configs", "wish", "checks"),
    [
        (TIERED, set_to("t", {**ON}), RECORDS),
        ({}, set_to("t", {**ON}), EMPTY),
        (OFF, set_to("t", {**ON}), EMPTY),
        ({}, set_to("t", {**ON, **TIERED}), RECORDS),
        (TIERED, replaced_by("t", {**ON, **TIERED}), RECORDS),
        (TIERED, replaced_by("t", {**ON}), RECORDS),
        (TIERED, set_to("t", {**ON}), KnownContents(problem="It is away.")),
    ],
    ids=[
        "tiered",
        "empty",
        "classic by choice",
        "tiered with it",
        "all given",
        "only the flag given",
        "empty, store away",
    ],
)
async def test_a_topic_becomes_diskless(configs: dict[str, str], wish: ConfigWish, checks: KnownContents) -> None:
    async with open_cluster(properties=TIERING) as cluster:
        topic = await cluster.create("t", [(1,), (1,)], configs)
        assert await ask(cluster, wish, checks, validate_only=True) is None
        assert cluster.image.topic_overrides("t") == configs
        assert await requested(cluster) == []
        assert await ask(cluster, wish, checks) is None
        is_tiered = TIERED if configs is TIERED or checks is RECORDS else {}
        assert cluster.image.topic_overrides("t") == {**ON, **is_tiered}
        assert await requested(cluster) == [topic.topic_id]


@pytest.mark.parametrize("value", ["false", None], ids=["set to false", "deleted"])
async def test_a_switch_that_has_not_begun_is_aborted(value: str | None) -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await cluster.create("t", configs=TIERED)
        await ask(cluster, set_to("t", {**ON}))
        wish = set_to("t", {DISKLESS_FLAG: value})
        assert await ask(cluster, wish, validate_only=True) is None
        assert len(await requested(cluster)) == 1
        assert await ask(cluster, wish) is None
        assert await requested(cluster) == []
        assert cluster.image.topic_overrides("t") == ({**TIERED, **OFF} if value else TIERED)
        assert await ask(cluster, set_to("t", {**ON})) is None
        assert len(await requested(cluster)) == 1


@pytest.mark.parametrize("validate_only", [False, True], ids=["for good", "validated"])
async def test_a_topic_that_was_created_diskless_stays_so(*, validate_only: bool) -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs=ON)
        for wish in (set_to("t", {**OFF}), set_to("t", {DISKLESS_FLAG: None}), replaced_by("t", OFF)):
            answer = await ask(cluster, wish, validate_only=validate_only)
            assert isinstance(answer, InvalidConfig)
            assert "One that was created diskless stays so" in str(answer)
        assert cluster.image.topic_overrides("t") == ON


async def test_a_refused_resource_does_not_stop_the_others() -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await cluster.create("born", configs=ON)
        tiered, plain = await cluster.create("tiered", configs=TIERED), await cluster.create("plain")
        answers = await cluster.controller.alter_configs(
            [
                set_to("born", {**OFF}),
                set_to("tiered", {**ON}),
                set_to("plain", {"retention.ms": "5"}),
                set_to("missing", {**ON}),
                set_to(ALL_BROKERS, {**UNCLEAN}),
            ],
            checks=RECORDS,
        )
        assert [type(answer).__name__ for answer in answers] == [
            "InvalidConfig",
            "NoneType",
            "NoneType",
            "UnknownTopicOrPartition",
            "InvalidRequest",
        ]
        assert await requested(cluster) == [tiered.topic_id]
        assert cluster.image.topic_overrides(plain.name) == {"retention.ms": "5"}
        assert cluster.image.cluster_default_overrides() == {}


async def migrating(cluster: Cluster, **configs: str) -> None:
    await cluster.create("t", configs={**TIERED, **{name.replace("_", "."): value for name, value in configs.items()}})
    assert await ask(cluster, set_to("t", {**ON})) is None


@pytest.mark.parametrize("validate_only", [False, True], ids=["for good", "validated"])
async def test_unclean_election_cannot_be_switched_on_while_migrating(*, validate_only: bool) -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await migrating(cluster)
        for resource, error in (("t", InvalidConfig), (ALL_BROKERS, InvalidRequest)):
            answer = await ask(cluster, set_to(resource, {**UNCLEAN}), validate_only=validate_only)
            assert type(answer) is error
            assert "unclean.leader.election.enable" in str(answer)
            assert "becomes diskless" in str(answer)
        assert cluster.image.topic_overrides("t") == {**TIERED, **ON}
        assert cluster.image.cluster_default_overrides() == {}
        await ask(cluster, set_to("t", {**OFF}))
        assert await ask(cluster, set_to("t", {**UNCLEAN})) is None
        assert await ask(cluster, set_to(ALL_BROKERS, {**UNCLEAN})) is None


async def test_a_topic_with_clean_elections_of_its_own_does_not_mind_the_default_but_keeps_them() -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await migrating(cluster, unclean_leader_election_enable="false")
        assert await ask(cluster, set_to(ALL_BROKERS, {**UNCLEAN})) is None
        answer = await ask(cluster, set_to("t", {"unclean.leader.election.enable": None}))
        assert isinstance(answer, InvalidConfig)


async def test_a_topic_that_becomes_diskless_stays_tiered() -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await migrating(cluster, remote_log_delete_on_disable="true")
        before = cluster.image.topic_overrides("t")
        for value in ("false", None):
            answer = await ask(cluster, set_to("t", {"remote.storage.enable": value}))
            assert isinstance(answer, InvalidConfig)
            assert str(answer).startswith("remote.storage.enable of t cannot become false: ")
        assert cluster.image.topic_overrides("t") == before
        assert await ask(cluster, replaced_by("t", {"retention.ms": "5"})) is None
        assert cluster.image.topic_overrides("t") == {**ON, **TIERED, "retention.ms": "5"}


async def test_tiering_is_switched_on_for_a_topic_on_its_way_and_for_no_other_diskless_one() -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await cluster.create("born", configs=ON)
        await cluster.create("t")
        await ask(cluster, set_to("t", {**ON}))
        assert await ask(cluster, set_to("t", {**TIERED})) is None
        answer = await ask(cluster, set_to("born", {**TIERED}))
        assert isinstance(answer, InvalidConfig)
        assert str(answer).startswith("remote.storage.enable of born cannot become true: ")


@pytest.mark.parametrize(
    ("before", "value"),
    [({}, "false"), ({}, None), (OFF, None), (ON, "TRUE")],
)
async def test_the_value_that_it_has_may_be_written_in_another_way(before: dict[str, str], value: str | None) -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs=before)
        assert await ask(cluster, set_to("t", {DISKLESS_FLAG: value})) is None
        assert await requested(cluster) == []


async def test_a_topic_that_was_created_anew_meanwhile_is_not_switched() -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await cluster.create("t", configs=TIERED)

        class During(KnownContents):
            __slots__ = ()

            async def non_empty_partitions(self, topic: object) -> tuple[int, ...]:
                await cluster.controller.delete_topics(["t"])
                await cluster.create("t", configs=TIERED)
                return ()

        answer = await ask(cluster, set_to("t", {**ON}), During(problem="It is away."))
        assert "was changed while it was checked" in str(answer)
        assert await requested(cluster) == []


@pytest.mark.parametrize("value", ["HYBRID", None], ids=["set", "deleted"])
async def test_the_state_of_a_switch_cannot_be_written(value: str | None) -> None:
    async with open_cluster() as cluster:
        await cluster.create("t")
        answer = await ask(cluster, set_to("t", {"diskless.migration.state": value}))
        assert isinstance(answer, InvalidConfig)
        assert str(answer).startswith("diskless.migration.state is read-only: ")


def test_a_replacement_without_the_flag_keeps_it() -> None:
    assert with_kept_flags(ON, {"retention.ms": "5"}) == {**ON, "retention.ms": "5"}
    assert with_kept_flags(ON, OFF) == OFF
    assert with_kept_flags({}, {"retention.ms": "5"}) == {"retention.ms": "5"}
    assert with_kept_flags({**ON, **TIERED}, {}) == {**ON, **TIERED}
    assert with_kept_flags({**ON, **TIERED}, OFF) == {**OFF, **TIERED}
    assert with_kept_flags(TIERED, ON) == {**ON, **TIERED}
    assert with_kept_flags(TIERED, {}) == {}
