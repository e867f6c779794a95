"""A whole image as bytes. A broker that starts reads the newest snapshot and the few records after it.

Compressed JSON, in arrays rather than objects where there is one per partition. `version` is checked by readers. It is
2 if the cluster is at a level of metadata that keeps older releases out (`metadata.features`); otherwise 1 for an image
with quotas, credentials or features, and 0 without, which older releases can read too.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from strandline.metadata.administered import (
    NOTHING_ADMINISTERED,
    Administered,
    QuotaOwner,
    ScramMechanism,
    ScramOwner,
)
from strandline.metadata.bucket_map import BucketEditor, BucketMap
from strandline.metadata.config_map import ConfigEditor, ConfigMap
from strandline.metadata.features import may_replicate
from strandline.metadata.image import (
    BrokerImage,
    ConfigResource,
    ConfigResourceType,
    FeatureSupport,
    LeaderRecoveryState,
    Listener,
    MetadataImage,
    Overrides,
    PartitionImage,
    TopicImage,
)
from strandline.metadata.log.record_json import (
    UnknownRecord,
    credential_from_json,
    credential_to_json,
    shared_nodes,
)
from strandline.metadata.topic_map import TopicEditor, TopicMap
from strandline.model import uuid_from_text, uuid_to_text
from strandline.tasks import in_one_go

_PLAIN: Final = 0
_ADMINISTERED: Final = 1
_REPLICATED: Final = 2
_FASTEST: Final = 1
_FIELDS_OF_ALL: Final = 7
_FIELDS_WITHOUT_DIRECTORIES: Final = 9
_LONG: Final = ("topics", "configs")  # arrays with an element for each
ENTRIES_PER_STEP: Final = 100  # topics, or resources with settings, in one turn of the event loop
_directories: Final = lru_cache(maxsize=4096)(lambda *texts: tuple(map(uuid_from_text, texts)))
_RECOVERY: Final = {state.value: state for state in LeaderRecoveryState}


def encode_image(image: MetadataImage) -> bytes:
    """The image as bytes."""
    return in_one_go(encode_in_steps(image))


def decode_image(data: bytes) -> MetadataImage:
    """The inverse of `encode_image`. Raises UnknownRecord if a newer version wrote it."""
    return in_one_go(decode_in_steps(zlib.decompress(data).decode()))


def encode_in_steps(image: MetadataImage) -> Generator[None, None, bytes]:
    """As `encode_image`. Yields after some of the topics: there may be a million."""
    compressor = zlib.compressobj(_FASTEST)
    packed: list[bytes] = []
    for text in _texts(image):
        packed.append(compressor.compress(text.encode()))
        yield
    packed.append(compressor.flush())
    return b"".join(packed)


def _texts(image: MetadataImage) -> Iterator[str]:
    """The JSON, in pieces that are short if what they hold is not one thing."""
    head: dict[str, Any] = {
        "version": _PLAIN,
        "offset": image.offset,
        "cluster_id": image.cluster_id,
        "controller": [image.controller_id, image.controller_epoch],
        "next_producer_id": image.next_producer_id,
        "brokers": [_broker_to_json(broker) for broker in image.brokers.values()],
    }
    if image.administered != NOTHING_ADMINISTERED:
        version = _REPLICATED if may_replicate(image) else _ADMINISTERED
        head |= {"version": version, **_administered_to_json(image.administered)}
    topics = (
        [topic.name, uuid_to_text(topic.topic_id), [_row(partition) for partition in topic.partitions]]
        for topic in image.topics.values()
    )
    configs = ([resource.type, resource.name, dict(values)] for resource, values in image.configs.items())
    yield _json(head)[:-1] + ',"topics":['
    yield from _elements(topics)
    yield '],"configs":['
    yield from _elements(configs)
    yield "]}"


def _elements(values: Iterator[Any]) -> Iterator[str]:
    comma = ""
    while some := list(islice(values, ENTRIES_PER_STEP)):
        yield comma + _json(some)[1:-1]
        comma = ","


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def decode_in_steps(text: str) -> Generator[None, None, MetadataImage]:
    """As `decode_image`, of the JSON. Yields after some of the topics."""
    value: dict[str, Any] = {}
    topics: list[TopicImage] = []
    configs: list[tuple[ConfigResource, Overrides]] = []
    for key, element in _members(text):
        match key:
            case "topics":
                topics.append(_topic_from_json(*element))
            case "configs":
                kind, name, values = element
                configs.append((ConfigResource(ConfigResourceType(kind), name), values))
            case _:
                value[key] = element
        if key == "version":
            _check_version(element)
        if (len(topics) + len(configs)) % ENTRIES_PER_STEP == 0:
            yield
    by_name, by_id = yield from _maps(topics)
    return MetadataImage(
        offset=value["offset"],
        cluster_id=value["cluster_id"],
        controller_id=value["controller"][0],
        controller_epoch=value["controller"][1],
        next_producer_id=value["next_producer_id"],
        brokers={fields["n"]: _broker_from_json(fields) for fields in value["brokers"]},
        topics=by_name,
        topics_by_id=by_id,
        configs=(yield from _config_map(configs)),
        administered=NOTHING_ADMINISTERED if value["version"] == _PLAIN else _administered_from_json(value),
    )


def _check_version(version: int) -> None:
    if version not in (_PLAIN, _ADMINISTERED, _REPLICATED):
        raise UnknownRecord(
            f"The metadata snapshot has version {version}, which this version of Strandline does not know. "
            "It was written by a newer version; start that one."
        )


def _members(text: str) -> Iterator[tuple[str, Any]]:
    """The members of a JSON object, in their order; of `topics` and `configs` each element by itself.

    `json.loads` would hold the interpreter until it has read them all.
    """
    decode, at = json.JSONDecoder().raw_decode, _expected("{", text, 0)
    while True:
        key, at = decode(text, at)
        at = _expected(":", text, at)
        if key in _LONG:
            at = _expected("[", text, at)
            while text[at] != "]":
                element, at = decode(text, at)
                yield key, element
                if text[at] == ",":
                    at += 1
            at += 1
        else:
            element, at = decode(text, at)
            yield key, element
        if text[at] == "}":
            return
        at = _expected(",", text, at)


def _expected(sign: str, text: str, at: int) -> int:
    if text[at] != sign:
        raise ValueError(f"A snapshot of the metadata has {text[at]} instead of {sign} at character {at}.")
    return at + 1


def _maps(topics: Sequence[TopicImage]) -> Generator[None, None, tuple[TopicMap, BucketMap[uuid.UUID, TopicImage]]]:
    by_name = TopicEditor(TopicMap(), room=len(topics))
    by_id: BucketEditor[uuid.UUID, TopicImage] = BucketEditor(BucketMap(), room=len(topics))
    for number, topic in enumerate(topics):
        by_name.put(topic)
        by_id.put(topic.topic_id, topic)
        if number % ENTRIES_PER_STEP == 0:
            yield
    return by_name.build(), by_id.build()


def _config_map(configs: list[tuple[ConfigResource, Overrides]]) -> Generator[None, None, ConfigMap]:
    """Empties the list: to free all its entries at once would be a long step, too."""
    editor = ConfigEditor(ConfigMap(), room=len(configs))
    configs.reverse()
    while configs:
        for resource, overrides in reversed(configs[-ENTRIES_PER_STEP:]):
            editor.put(resource, overrides)
        del configs[-ENTRIES_PER_STEP:]
        yield
    return editor.build()


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


def _row(partition: PartitionImage) -> tuple[Any, ...]:
    """Without the number, and without eligible leaders and directories where there are none, as for most partitions."""
    if partition.directories:
        return (*partition[1:_FIELDS_WITHOUT_DIRECTORIES], [uuid_to_text(one) for one in partition.directories])
    has_eligible = partition.elr or partition.last_known_elr
    return partition[1:_FIELDS_WITHOUT_DIRECTORIES] if has_eligible else partition[1:_FIELDS_OF_ALL]


def _topic_from_json(name: str, topic_id: str, rows: list[list[Any]]) -> TopicImage:
    partitions = tuple([_partition_from_json(number, *row) for number, row in enumerate(rows)])
    return TopicImage(name, uuid_from_text(topic_id), partitions)


def _partition_from_json(
    number: int,
    replicas: list[int],
    isr: list[int],
    leader: int,
    leader_epoch: int,
    partition_epoch: int,
    state: int,
    elr: Sequence[int] = (),
    last_known_elr: Sequence[int] = (),
    directories: Sequence[str] = (),
) -> PartitionImage:
    return PartitionImage(
        number,
        shared_nodes(replicas),
        shared_nodes(isr),
        leader,
        leader_epoch,
        partition_epoch,
        _RECOVERY[state],
        shared_nodes(elr),
        shared_nodes(last_known_elr),
        _directories(*directories),
    )


def _broker_to_json(broker: BrokerImage) -> dict[str, Any]:
    fields = {
        "n": broker.node_id,
        "e": broker.epoch,
        "i": str(broker.incarnation_id),
        "l": broker.listeners,
        "r": broker.rack,
        "f": broker.fenced,
        "s": broker.in_controlled_shutdown,
        "ft": broker.features,
    }
    if broker.log_dirs:
        fields["d"] = [uuid_to_text(one) for one in broker.log_dirs]
    if broker.failed_log_dirs:
        fields["fd"] = [uuid_to_text(one) for one in broker.failed_log_dirs]
    return fields


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
        log_dirs=tuple(map(uuid_from_text, fields.get("d", ()))),
        failed_log_dirs=tuple(map(uuid_from_text, fields.get("fd", ()))),
    )
