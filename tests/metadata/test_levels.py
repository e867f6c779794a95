"""`metadata.version`: a cluster is upgraded broker by broker, and no broker meets a record that it cannot read."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from strandline.errors import InvalidUpdateVersion, UnsupportedVersion
from strandline.metadata import (
    BrokerHeartbeat,
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    DirectoryAssignment,
    FeatureUpgrade,
    FeatureWish,
    MetadataImage,
    Plan,
    may_replicate,
)
from strandline.metadata.features import METADATA_VERSION, REPLICATED, TRANSACTION_VERSION, UNREPLICATED
from strandline.metadata.image import FeatureSupport
from strandline.metadata.log.record_json import encode_record
from strandline.metadata.log.snapshot import decode_image, encode_image
from strandline.metadata.plans.elections import PartitionChange, grouped
from strandline.metadata.records import (
    BrokerChangeRecord,
    ClusterRecord,
    MetadataRecord,
    PartitionRecord,
    ReplicaDirectoryRecord,
)
from strandline.model import NO_LEADER
from strandline.sql import open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import MEMORY, Cluster, member, registration

OF_THE_OLD_RELEASE = (FeatureSupport("group.version", 0, 1), FeatureSupport(TRANSACTION_VERSION, 0, 2))
DISK = uuid.UUID(int=4711)
KNOWN_TO_THE_OLD_RELEASE = {
    "cluster": {"id"},
    "controller": {"n", "e"},
    "register-broker": {"n", "i", "l", "r", "f", "s", "ft"},
    "broker-change": {"n", "e", "f", "s"},
    "unregister-broker": {"n", "e"},
    "topic": {"n", "t"},
    "partition": {"t", "p", "r", "i", "l", "e", "pe", "rs"},
    "partition-change": {"p", "i", "l", "rs"},
    "config": {"t", "n", "k", "x"},
    "feature": {"n", "x"},
}
COLUMNS_OF_THE_OLD_RELEASE = 6


@asynccontextmanager
async def old_cluster() -> AsyncIterator[Cluster]:
    """A cluster that an older release began. Broker 1 has this release and the controller, broker 2 not yet."""
    async with open_store(MEMORY) as sql:
        cluster = member(sql, VirtualClock())
        term = await cluster.store.take_lease(2, may_take=lambda _: True, duration_ms=None)
        assert term is not None
        await cluster.store.append(term, term.first_offset + 1, [ClusterRecord(cluster_id="old")])
        await cluster.store.release_lease(term)
        await cluster.loader.load()
        assert await cluster.controller.activate()
        await cluster.controller.register_broker(replace(registration(2), features=OF_THE_OLD_RELEASE))
        await cluster.controller.register_broker(replace(registration(1), log_dirs=(DISK,)))
        for node_id in (1, 2):
            await cluster.beat(node_id)
        yield cluster


async def finalize(cluster: Cluster, level: int, upgrade: FeatureUpgrade = FeatureUpgrade.UPGRADE) -> None:
    await cluster.controller.update_features([FeatureWish(name=METADATA_VERSION, level=level, upgrade=upgrade)])


async def test_the_old_release_reads_everything_that_is_written_at_its_level() -> None:
    async with old_cluster() as cluster:
        await cluster.create("t", [[1], [2]])
        await cluster.beat(2, want_fence=True)
        await cluster.beat(1, want_fence=True)
        last = cluster.partition("t")
        assert (last.leader, last.isr, last.elr, last.last_known_elr) == (NO_LEADER, (1,), (), ())
        await cluster.beat(1)
        assert not may_replicate(cluster.image)
        for _, record in await cluster.store.read(-1):
            kind, payload = encode_record(record)
            assert json.loads(payload).keys() <= KNOWN_TO_THE_OLD_RELEASE[kind]
        snapshot = json.loads(zlib.decompress(encode_image(cluster.image)))
        assert snapshot["version"] in (0, 1)
        assert all("d" not in broker for broker in snapshot["brokers"])
        rows = [row for _, _, partitions in snapshot["topics"] for row in partitions]
        assert [len(row) for row in rows] == [COLUMNS_OF_THE_OLD_RELEASE] * 2


def planned(record: MetadataRecord, image: MetadataImage) -> Plan[None]:
    return Plan([record], None)


async def test_a_record_that_the_old_release_cannot_read_is_not_written_whichever_plan_made_it() -> None:
    async with old_cluster() as cluster:
        topic, before = await cluster.create("t"), cluster.image
        wide = PartitionRecord(topic_id=topic.topic_id, partition=1, replicas=(1, 2), isr=(1, 2), leader=1)
        epoch = before.brokers[1].epoch
        records: list[MetadataRecord] = [
            *grouped([PartitionChange(topic.topic_id, 0, replicas=(1, 2))]),
            wide,
            ReplicaDirectoryRecord(node_id=1, directory=DISK, partitions=((topic.topic_id, (0,)),)),
            BrokerChangeRecord(node_id=1, broker_epoch=epoch, failed_log_dirs=(DISK,)),
        ]
        for wider in records:
            with pytest.raises(UnsupportedVersion, match=r"level 22 of metadata\.version"):
                await cluster.controller.write(partial(planned, wider))
        with pytest.raises(UnsupportedVersion, match=r"metadata\.version"):
            await cluster.controller.assign_directories(1, epoch, [DirectoryAssignment(topic.topic_id, 0, DISK)])
        failed = BrokerHeartbeat(
            node_id=1, broker_epoch=epoch, current_metadata_offset=before.offset, failed_log_dirs=(DISK,)
        )
        assert not (await cluster.controller.broker_heartbeat(failed)).is_fenced
        assert cluster.image is before


async def test_the_level_rises_when_all_brokers_know_it_and_never_goes_down() -> None:
    async with old_cluster() as cluster:
        with pytest.raises(InvalidUpdateVersion, match="Broker 2 does not support level 23"):
            await finalize(cluster, REPLICATED)
        cluster.clock.move(10.0)  # type: ignore[attr-defined]
        await cluster.start_broker(2, 2)  # with this release
        assert not may_replicate(cluster.image), "only an administrator raises it: until then there is a way back"
        await finalize(cluster, REPLICATED)
        assert may_replicate(cluster.image)
        for kind in (FeatureUpgrade.SAFE_DOWNGRADE, FeatureUpgrade.UNSAFE_DOWNGRADE):
            with pytest.raises(InvalidUpdateVersion, match="cannot go down"):
                await finalize(cluster, UNREPLICATED, kind)


async def test_the_old_release_cannot_join_once_the_level_has_risen() -> None:
    async with old_cluster() as cluster:
        await cluster.beat(2, want_fence=True)
        await cluster.controller.unregister_broker(2)
        await finalize(cluster, REPLICATED)
        with pytest.raises(UnsupportedVersion, match=r"Broker 2 cannot register: metadata\.version has"):
            await cluster.controller.register_broker(replace(registration(2), features=OF_THE_OLD_RELEASE))


async def test_raising_the_level_takes_back_what_brokers_may_not_differ_in() -> None:
    async with old_cluster() as cluster:
        cluster.clock.move(10.0)  # type: ignore[attr-defined]
        await cluster.start_broker(2, 2)
        key, own = "min.insync.replicas", ConfigResource(ConfigResourceType.BROKER, "2")
        change = ConfigChange(key, ConfigOperation.SET, "2")
        assert await cluster.controller.alter_configs([ConfigAlteration(resource=own, changes=[change])]) == [None]
        await finalize(cluster, REPLICATED)
        assert cluster.image.overrides(own) == {}


async def test_from_then_on_partitions_have_eligible_leaders_and_brokers_directories() -> None:
    async with old_cluster() as cluster:
        cluster.clock.move(10.0)  # type: ignore[attr-defined]
        await cluster.start_broker(2, 2)
        await finalize(cluster, REPLICATED)
        await cluster.create("t", [[1, 2]], configs={"min.insync.replicas": "2"})
        await cluster.beat(2, want_fence=True)
        assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))
        await cluster.controller.register_broker(replace(registration(1, 2), log_dirs=(DISK,)))
        assert cluster.image.brokers[1].log_dirs == (DISK,)
        data = encode_image(cluster.image)
        assert json.loads(zlib.decompress(data))["version"] == 2, "which the old release refuses to read"
        assert decode_image(data) == cluster.image
        assert await cluster.store.load() == cluster.image
