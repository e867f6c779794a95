"""What is done to one broker outside of the comparison: topics and their settings, switches, conversions."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.asking import Refused, served
from tests.pipeline.world import convert

from differential.places import Place
from differential.sides import PATIENCE_SECONDS, Side
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_TOPIC, _BROKER = 2, 4  # kinds of resources with settings
_STEP_SECONDS: Final = 0.02


def wait_until(is_reached: Callable[[], bool], what: str) -> None:
    """Raises TimeoutError after a while that is long for any machine."""
    deadline = time.monotonic() + 2 * PATIENCE_SECONDS
    while not is_reached():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited in vain for {what}.")
        time.sleep(_STEP_SECONDS)


def create(client: Client, side: Side, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    """A topic, whose partitions are served when this returns."""
    entries = [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=entries)
    answer = client.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
    served(answer.topics[0].error_code, f"creating {name} ({answer.topics[0].error_message})")
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    side.topic_ids[name] = client.request(ApiKey.METADATA, asked).topics[0].topic_id
    places = [Place(name, number) for number in range(partitions)]
    wait_until(lambda: all(offset_of(client, place, -1)[0] == 0 for place in places), f"{name} to be served")


def offset_of(client: Client, place: Place, timestamp: int) -> tuple[int, int]:
    """ListOffsets: error and offset."""
    asked = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
    topic = ListOffsetsTopic(name=place.topic, partitions=[asked])
    answer = client.request(ApiKey.LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=[topic], timeout_ms=30_000))
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset


def write(client: Client, place: Place, records: bytes) -> int:
    """Produce one batch, which has to be accepted; its first offset."""
    data = TopicProduceData(
        name=place.topic, partition_data=[PartitionProduceData(index=place.partition, records=records)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    answer = client.request(ApiKey.PRODUCE, request, version=9).responses[0].partition_responses[0]
    served(answer.error_code, f"writing to {place} ({answer.error_message})")
    return int(answer.base_offset)


def alter_topic(client: Client, topic: str, configs: Mapping[str, str]) -> None:
    """Set these settings and leave the others."""
    _alter(client, _TOPIC, topic, configs)


def alter_broker(client: Client, configs: Mapping[str, str]) -> None:
    """The same for dynamic settings of all brokers."""
    _alter(client, _BROKER, "", configs)


def _alter(client: Client, kind: int, name: str, configs: Mapping[str, str]) -> None:
    entries = [AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
    answer = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource]))
    one = answer.responses[0]
    if one.error_code:
        raise Refused(f"settings of {name or 'the broker'}: error {one.error_code}, {one.error_message}")


def leader_epochs(client: Client, topic: str) -> dict[int, int]:
    """By the number of the partition, as Metadata tells them."""
    answer = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version=12)
    return {one.partition_index: one.leader_epoch for one in answer.topics[0].partitions}


def switch_topic(client: Client, side: Side, topic: str) -> list[int]:
    """Make a topic diskless; its boundaries, when every partition has one."""
    alter_topic(client, topic, {"diskless.enable": "true"})
    wait_until(lambda: min(boundaries(side, topic)) >= 0, f"the boundaries of {topic}")
    return boundaries(side, topic)


def boundaries(side: Side, topic: str) -> list[int]:
    """B0 of each partition; -1 where there is none yet."""
    return [one["b0"] for one in _switch_status(side, topic)["partitions"]] or [-1]


def wait_for_state(side: Side, topic: str, state: str) -> None:
    """HYBRID, DISKLESS_ONLY."""
    wait_until(lambda: _switch_status(side, topic)["state"] == state, f"{topic} to be {state}")


def _switch_status(side: Side, topic: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{side.broker.http_url}/topics/{topic}/migration", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError:  # it listens for clients first
        return {"state": "", "partitions": []}
    return found


def convert_topic(side: Side, topic: str) -> None:
    """All that is committed becomes remote segments: the pipeline in this process, without Spark."""
    convert(side.broker.bootstrap, topic)


def damage(side: Side, place: Place, what: str) -> None:
    """Remove the log of a partition from the disk of a broker that does not run, or its `tail`."""
    directory = Path(side.broker.data_dir) / "logs" / f"{place.topic}-{place.partition}"
    if what == "log":
        shutil.rmtree(directory)
        return
    for log in sorted(directory.glob("*.log"))[1:]:
        for file in directory.glob(f"{log.stem}.*"):
            file.unlink()
