"""What one broker of a cluster shows and does when it is asked by itself, with hand-made requests.

A client library asks any broker of the cluster. Here it matters which one answers: how soon each of them knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from strandline.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

_TOPIC_RESOURCE: Final = 2
_SET: Final = 0
_LATEST: Final = -1
_DELETED_BY_NAME: Final = 5
_QUORUM_TOPIC: Final = "__cluster_metadata"
_FINE: Final = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})
NO_LEADER: Final = -1


class Unanswered(RuntimeError):
    """A broker has refused what it was asked. The text is its error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One partition as one broker shows it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Led, with every replica in sync."""
        return self.leader != NO_LEADER and {*self.in_sync} == {*self.replicas}

    @property
    def is_led_as_preferred(self) -> bool:
        """By the first of its replicas."""
        return self.leader == self.replicas[0]


class View:
    """A connection to one broker, opened when it is needed. Raises OSError where the broker does not answer in time."""

    def __init__(self, port: int, *, timeout: float = 120.0) -> None:
        self._port, self._timeout = port, timeout
        self._client: Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def ask(self, key: ApiKey, request: Any, *, version: int | None = None) -> Any:
        if self._client is None:
            self._client = Client.connect("127.0.0.1", self._port, timeout_s=self._timeout)
        try:
            return self._client.request(key, request, version=version)
        except OSError:
            self.close()
            raise

    # What it shows

    def alive(self) -> set[int]:
        """The brokers that this one takes for alive."""
        return {broker.node_id for broker in self.ask(ApiKey.METADATA, MetadataRequest(topics=[])).brokers}

    def controller(self) -> int:
        """The active controller: in Kafka the leader of the quorum, which Metadata does not tell."""
        asked = RequestTopicData(topic_name=_QUORUM_TOPIC, partitions=[RequestPartitionData(partition_index=0)])
        answer = self.ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[asked]))
        _fine(answer.error_code, answer.error_message, "DescribeQuorum")
        (found,) = answer.topics[0].partitions
        _fine(found.error_code, found.error_message, "DescribeQuorum")
        return int(found.leader_id)

    def topic(self, name: str) -> list[Shown]:
        """The partitions of a topic; none where the broker does not know it yet."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        (found,) = self.ask(ApiKey.METADATA, request).topics
        return [
            Shown(
                leader=one.leader_id,
                leader_epoch=one.leader_epoch,
                replicas=tuple(one.replica_nodes),
                in_sync=tuple(one.isr_nodes),
            )
            for one in sorted(found.partitions, key=lambda one: int(one.partition_index))
        ]

    def config(self, topic: str, name: str) -> str | None:
        """The value of one setting of a topic."""
        asked = DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=[name])
        (found,) = self.ask(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[asked])).results
        _fine(found.error_code, found.error_message, f"DescribeConfigs of {topic}")
        return next((config.value for config in found.configs if config.name == name), None)

    def end(self, topic: str, partition: int) -> int:
        """The offset that follows the last record of a partition that this broker leads."""
        asked = ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
        (found,) = self.ask(ApiKey.LIST_OFFSETS, request).topics[0].partitions
        _fine(found.error_code, None, f"ListOffsets of {topic}-{partition}")
        return int(found.offset)

    # What it does

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
        )
        (made,) = self.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[wanted])).topics
        _fine(made.error_code, made.error_message, f"CreateTopics of {name}")

    def delete(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000)
        (gone,) = self.ask(ApiKey.DELETE_TOPICS, request, version=_DELETED_BY_NAME).responses
        _fine(gone.error_code, gone.error_message, f"DeleteTopics of {name}")

    def grow(self, name: str, partitions: int) -> None:
        """Have so many partitions."""
        wanted = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=60_000)
        (grown,) = self.ask(ApiKey.CREATE_PARTITIONS, request).results
        _fine(grown.error_code, grown.error_message, f"CreatePartitions of {name}")

    def configure(self, topic: str, name: str, value: str) -> None:
        wanted = AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE,
            resource_name=topic,
            configs=[AlterableConfig(name=name, config_operation=_SET, value=value)],
        )
        request = IncrementalAlterConfigsRequest(resources=[wanted])
        (done,) = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
        _fine(done.error_code, done.error_message, f"IncrementalAlterConfigs of {topic}")

    def prefer(self, topic: str, partitions: Sequence[int]) -> None:
        """Have these partitions led by the first of their replicas."""
        wanted = [TopicPartitions(topic=topic, partitions=[*partitions])]
        answer = self.ask(ApiKey.ELECT_LEADERS, ElectLeadersRequest(election_type=0, topic_partitions=wanted))
        _fine(answer.error_code, None, "ElectLeaders")
        for result in answer.replica_election_results:
            for one in result.partition_result:
                _fine(one.error_code, one.error_message, f"ElectLeaders of {topic}-{one.partition_id}")


def _fine(error_code: int, message: str | None, what: str) -> None:
    if error_code not in _FINE:
        raise Unanswered(f"{what}: {ErrorCode(error_code).name}{f' ({message})' if message else ''}.")
