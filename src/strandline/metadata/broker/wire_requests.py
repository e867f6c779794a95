"""Translates requests of brokers to a controller, and its answers, into Kafka's messages and back."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from strandline.errors import InvalidRegistration
from strandline.metadata.image import RESERVED_DIRECTORY_IDS, FeatureSupport, Listener
from strandline.metadata.requests import BrokerHeartbeat, BrokerRegistration, HeartbeatReply, NewTopic
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from strandline.wire.messages.broker_registration import Listener as WireListener
from strandline.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")  # Kafka's number is the index


def registration_request(broker: BrokerRegistration) -> BrokerRegistrationRequest:
    """The message that registers a broker."""
    return BrokerRegistrationRequest(
        broker_id=broker.node_id,
        cluster_id=broker.cluster_id,
        incarnation_id=broker.incarnation_id,
        listeners=[
            WireListener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=_PROTOCOLS.index(listener.security_protocol),
            )
            for listener in broker.listeners
        ],
        rack=broker.rack,
        features=[
            Feature(name=one.name, min_supported_version=one.min, max_supported_version=one.max)
            for one in broker.features
        ],
        log_dirs=list(broker.log_dirs),
        previous_broker_epoch=broker.previous_broker_epoch,
    )


def registration_of(request: BrokerRegistrationRequest) -> BrokerRegistration:
    """The broker that registers by this message. Raises InvalidRegistration."""
    if not request.listeners:
        raise InvalidRegistration("A broker without listeners cannot be registered.")
    if len({listener.name for listener in request.listeners}) != len(request.listeners):
        raise InvalidRegistration("The names of a broker's listeners must be different.")
    return BrokerRegistration(
        node_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        listeners=tuple(
            Listener(listener.name, listener.host, listener.port, _protocol(listener.security_protocol))
            for listener in request.listeners
        ),
        cluster_id=request.cluster_id,
        rack=request.rack,
        features=tuple(
            FeatureSupport(one.name, one.min_supported_version, one.max_supported_version) for one in request.features
        ),
        previous_broker_epoch=request.previous_broker_epoch,
        log_dirs=_log_dirs(request.log_dirs),
    )


def _log_dirs(ids: Sequence[uuid.UUID]) -> tuple[uuid.UUID, ...]:
    if len(set(ids)) != len(ids) or any(one.int < RESERVED_DIRECTORY_IDS for one in ids):
        raise InvalidRegistration("The ids of a broker's log directories must be different, and none reserved.")
    return tuple(ids)


def _protocol(number: int) -> str:
    if not 0 <= number < len(_PROTOCOLS):
        raise InvalidRegistration(f"There is no security protocol {number}.")
    return _PROTOCOLS[number]


def heartbeat_request(heartbeat: BrokerHeartbeat) -> BrokerHeartbeatRequest:
    """The message of a heartbeat."""
    return BrokerHeartbeatRequest(
        broker_id=heartbeat.node_id,
        broker_epoch=heartbeat.broker_epoch,
        current_metadata_offset=heartbeat.current_metadata_offset,
        want_fence=heartbeat.want_fence,
        want_shut_down=heartbeat.want_shut_down,
        offline_log_dirs=list(heartbeat.failed_log_dirs),
    )


def heartbeat_of(request: BrokerHeartbeatRequest) -> BrokerHeartbeat:
    """The heartbeat in this message."""
    return BrokerHeartbeat(
        node_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        current_metadata_offset=request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        failed_log_dirs=tuple(request.offline_log_dirs),
    )


def heartbeat_reply(answer: BrokerHeartbeatResponse) -> HeartbeatReply:
    """The controller's reply in this message."""
    return HeartbeatReply(
        is_caught_up=answer.is_caught_up, is_fenced=answer.is_fenced, should_shut_down=answer.should_shut_down
    )


def create_topics_request(topics: Sequence[NewTopic]) -> CreateTopicsRequest:
    """The message that creates these topics."""
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                    for number, replicas in topic.assignments.items()
                ],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
            )
            for topic in topics
        ]
    )
