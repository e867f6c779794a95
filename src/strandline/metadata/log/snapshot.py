"""A whole image as bytes. A broker that starts reads the newest snapshot and the few records after it.

Compressed JSON, in arrays rather than objects where there is one per partition. `version` is checked by readers. An
image with quotas, credentials or features has version 1, any other version 0, which older releases can read too.
"""

from __future__ import annotations

import json
import uuid
import zlib
from typing import Any, Final

from strandline.metadata.administered import (
    NOTHING_ADMINISTERED,
    Administered,
    QuotaOwner,
    ScramMechanism,
    ScramOwner,
)
from strandline.metadata.image import (
    BrokerImage,
    ConfigResource,
    ConfigResourceType,
    FeatureSupport,
    LeaderRecoveryState,
    Listener,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from strandline.metadata.log.record_json import credential_from_json, credential_to_json, shared_nodes
from strandline.metadata.records import UnknownRecord
from strandline.model import uuid_from_text, uuid_to_text

_PLAIN: Final = 0
_ADMINISTERED: Final = 1
_FASTEST: Final = 1
_RECOVERY: Final = {state.value: state for state in LeaderRecoveryState}


def encode_image(image: MetadataImage) -> bytes:
    """The image as bytes."""
    value: dict[str, Any] = {
        "version": _PLAIN,
        "offset": image.offset,
        "cluster_id": image.cluster_id,
        "controller": [image.controller_id, image.controller_epoch],
        "next_producer_id": image.next_producer_id,
        "brokers": [_broker_to_json(broker) for broker in image.brokers.values()],
        "topics": [
            [topic.name, uuid_to_text(topic.topic_id), [partition[1:] for partition in topic.partitions]]
            for topic in image.topics.values()
        ],
        "configs": [[resource.type, resource.name, dict(values)] for resource, values in image.configs.items()],
    }
    if image.administered != NOTHING_ADMINISTERED:
        value |= {"version": _ADMINISTERED, **_administered_to_json(image.administered)}
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), _FASTEST)


def decode_image(data: bytes) -> MetadataImage:
    """The inverse of `encode_image`. Raises UnknownRecord if a newer version wrote it."""
    value = json.loads(zlib.decompress(data))
    if value["version"] not in (_PLAIN, _ADMINISTERED):
        raise UnknownRecord(
            f"The metadata snapshot has version {value['version']}, which this version of Strandline does not know. "
            "It was written by a newer version; start that one."
        )
    topics = {name: _topic_from_json(name, topic_id, rows) for name, topic_id, rows in value["topics"]}
    return MetadataImage(
        offset=value["offset"],
        cluster_id=value["cluster_id"],
        controller_id=value["controller"][0],
        controller_epoch=value["controller"][1],
        next_producer_id=value["next_producer_id"],
        brokers={fields["n"]: _broker_from_json(fields) for fields in value["brokers"]},
        topics=topics,
        topics_by_id={topic.topic_id: topic for topic in topics.values()},
        configs={ConfigResource(ConfigResourceType(kind), name): values for kind, name, values in value["configs"]},
        administered=NOTHING_ADMINISTERED if value["version"] == _PLAIN else _administered_from_json(value),
    )


def _administered_to_json(administered: Administered) -> dict[str, Any]:
    return {
        "quotas": [[entity, dict(values)] for entity, values in administered.quotas.items()],
        "scram": [
            [owner.user, owner.mechanism, credential_to_json(credential)]
            for owner, credential in administered.credentials.items()
        ],
        "features": dict(administered.feature_levels),
    }


def _administered_from_json(value: dict[str, Any]) -> Administered:
    return Administered(
        quotas={tuple(QuotaOwner(*owner) for owner in entity): values for entity, values in value["quotas"]},
        credentials={
            ScramOwner(user, ScramMechanism(mechanism)): credential_from_json(fields)
            for user, mechanism, fields in value["scram"]
        },
        feature_levels=value["features"],
    )


def _topic_from_json(name: str, topic_id: str, rows: list[list[Any]]) -> TopicImage:
    partitions = [
        PartitionImage(
            number, shared_nodes(replicas), shared_nodes(isr), leader, leader_epoch, partition_epoch, _RECOVERY[state]
        )
        for number, (replicas, isr, leader, leader_epoch, partition_epoch, state) in enumerate(rows)
    ]
    return TopicImage(name, uuid_from_text(topic_id), tuple(partitions))


def _broker_to_json(broker: BrokerImage) -> dict[str, Any]:
    return {
        "n": broker.node_id,
        "e": broker.epoch,
        "i": str(broker.incarnation_id),
        "l": broker.listeners,
        "r": broker.rack,
        "f": broker.fenced,
        "s": broker.in_controlled_shutdown,
        "ft": broker.features,
    }


def _broker_from_json(fields: dict[str, Any]) -> BrokerImage:
    return BrokerImage(
        node_id=fields["n"],
        epoch=fields["e"],
        incarnation_id=uuid.UUID(fields["i"]),
        listeners=tuple(Listener(*listener) for listener in fields["l"]),
        rack=fields["r"],
        fenced=fields["f"],
        in_controlled_shutdown=fields["s"],
        features=tuple(FeatureSupport(*feature) for feature in fields.get("ft", ())),
    )
