"""Metadata records to JSON and back: the encoding in the table.

It is compact (short keys, defaults left out) because there is one record per partition. An encoding that changes
gets a version as "v" (0 when absent); readers refuse versions they do not know. A record without new fields is written
as version 0, which older releases can read; those with them are only written at a level of the metadata that keeps
older releases out (`metadata.features`).
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from strandline.metadata.administered import QuotaOwner, ScramCredential, ScramMechanism, ScramOwner
from strandline.metadata.image import ConfigResource, ConfigResourceType, FeatureSupport, LeaderRecoveryState, Listener
from strandline.metadata.records import (
    BrokerChangeRecord,
    ClientQuotaRecord,
    ClusterRecord,
    ConfigRecord,
    ControllerChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    ReplicaDirectoryRecord,
    ScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from strandline.model import uuid_from_text, uuid_to_text
from strandline.sql import SchemaMismatch

_dump: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_topic_id: Final = lru_cache(maxsize=256)(uuid_from_text)  # the partitions of a topic follow each other
_topic_text: Final = lru_cache(maxsize=256)(uuid_to_text)
_Partitions: TypeAlias = tuple[tuple[uuid.UUID, tuple[int, ...]], ...]
_nodes: Final = lru_cache(maxsize=4096)(lambda *nodes: nodes)  # equal replica lists share one tuple


class UnknownRecord(SchemaMismatch):
    """The log holds a record of a type or version that this code does not know: a newer version wrote it."""


def shared_nodes(nodes: Sequence[int]) -> tuple[int, ...]:
    """A tuple of node ids; equal lists give the same object, since thousands of partitions share a few lists."""
    return _nodes(*nodes)


def _recovery(value: int | None) -> LeaderRecoveryState | None:
    return None if value is None else LeaderRecoveryState(value)


class _Form(NamedTuple):
    name: str
    to_json: Callable[[Any], dict[str, Any]]
    from_json: Callable[[dict[str, Any]], MetadataRecord]
    newest: int = 0


def _register_to_json(record: RegisterBrokerRecord) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "n": record.node_id,
        "i": str(record.incarnation_id),
        "l": [list(listener) for listener in record.listeners],
    }
    if record.rack is not None:
        payload["r"] = record.rack
    if not record.fenced:
        payload["f"] = False
    if record.in_controlled_shutdown:
        payload["s"] = True
    if record.features:
        payload["ft"] = record.features
    if record.log_dirs:
        payload |= {"v": 1, "d": [uuid_to_text(one) for one in record.log_dirs]}
    return payload


def _register_from_json(payload: dict[str, Any]) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        node_id=payload["n"],
        incarnation_id=uuid.UUID(payload["i"]),
        listeners=tuple(Listener(*listener) for listener in payload["l"]),
        rack=payload.get("r"),
        fenced=payload.get("f", True),
        in_controlled_shutdown=payload.get("s", False),
        features=tuple(FeatureSupport(*feature) for feature in payload.get("ft", ())),
        log_dirs=tuple(map(uuid_from_text, payload.get("d", ()))),
    )


def _broker_change_to_json(record: BrokerChangeRecord) -> dict[str, Any]:
    payload: dict[str, Any] = {"n": record.node_id, "e": record.broker_epoch}
    if record.fenced is not None:
        payload["f"] = record.fenced
    if record.in_controlled_shutdown is not None:
        payload["s"] = record.in_controlled_shutdown
    if record.failed_log_dirs is not None:
        payload |= {"v": 1, "fd": [uuid_to_text(one) for one in record.failed_log_dirs]}
    return payload


def _broker_change_from_json(payload: dict[str, Any]) -> BrokerChangeRecord:
    failed = payload.get("fd")
    return BrokerChangeRecord(
        node_id=payload["n"],
        broker_epoch=payload["e"],
        fenced=payload.get("f"),
        in_controlled_shutdown=payload.get("s"),
        failed_log_dirs=None if failed is None else tuple(map(uuid_from_text, failed)),
    )


def _partition_to_json(record: PartitionRecord) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "t": _topic_text(record.topic_id),
        "p": record.partition,
        "r": record.replicas,
        "i": record.isr,
        "l": record.leader,
    }
    if record.leader_epoch or record.partition_epoch or record.leader_recovery_state:
        payload |= {"e": record.leader_epoch, "pe": record.partition_epoch, "rs": record.leader_recovery_state}
    return payload


def _partition_from_json(payload: dict[str, Any]) -> PartitionRecord:
    return PartitionRecord(
        topic_id=_topic_id(payload["t"]),
        partition=payload["p"],
        replicas=_nodes(*payload["r"]),
        isr=_nodes(*payload["i"]),
        leader=payload["l"],
        leader_epoch=payload.get("e", 0),
        partition_epoch=payload.get("pe", 0),
        leader_recovery_state=LeaderRecoveryState(payload.get("rs", 0)),
    )


def _partition_change_to_json(record: PartitionChangeRecord) -> dict[str, Any]:
    payload: dict[str, Any] = {"p": _partitions_to_json(record.partitions)}
    if record.isr is not None:
        payload["i"] = record.isr
    if record.leader is not None:
        payload["l"] = record.leader
    if record.leader_recovery_state is not None:
        payload["rs"] = record.leader_recovery_state
    newer = {"r": record.replicas, "el": record.elr, "lk": record.last_known_elr}
    fields = {key: nodes for key, nodes in newer.items() if nodes is not None}
    return payload | fields | {"v": 1} if fields else payload


def _partition_change_from_json(payload: dict[str, Any]) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partitions=_partitions_from_json(payload["p"]),
        isr=_changed_nodes(payload.get("i")),
        leader=payload.get("l"),
        leader_recovery_state=_recovery(payload.get("rs")),
        replicas=_changed_nodes(payload.get("r")),
        elr=_changed_nodes(payload.get("el")),
        last_known_elr=_changed_nodes(payload.get("lk")),
    )


def _partitions_to_json(partitions: _Partitions) -> list[Any]:
    return [[_topic_text(topic_id), numbers] for topic_id, numbers in partitions]


def _partitions_from_json(rows: list[Any]) -> _Partitions:
    return tuple((_topic_id(topic_id), tuple(numbers)) for topic_id, numbers in rows)


def _directory_to_json(record: ReplicaDirectoryRecord) -> dict[str, Any]:
    partitions = _partitions_to_json(record.partitions)
    return {"n": record.node_id, "d": uuid_to_text(record.directory), "p": partitions}


def _directory_from_json(payload: dict[str, Any]) -> ReplicaDirectoryRecord:
    return ReplicaDirectoryRecord(
        node_id=payload["n"],
        directory=uuid_from_text(payload["d"]),
        partitions=_partitions_from_json(payload["p"]),
    )


def _changed_nodes(nodes: list[int] | None) -> tuple[int, ...] | None:
    return None if nodes is None else _nodes(*nodes)


def _config_to_json(record: ConfigRecord) -> dict[str, Any]:
    return {"t": record.resource.type, "n": record.resource.name, "k": record.key, "x": record.value}


def _config_from_json(payload: dict[str, Any]) -> ConfigRecord:
    resource = ConfigResource(ConfigResourceType(payload["t"]), payload["n"])
    return ConfigRecord(resource=resource, key=payload["k"], value=payload["x"])


def _quota_from_json(payload: dict[str, Any]) -> ClientQuotaRecord:
    entity = tuple(QuotaOwner(kind, name) for kind, name in payload["e"])
    return ClientQuotaRecord(entity=entity, key=payload["k"], value=payload["x"])


def credential_to_json(credential: ScramCredential) -> list[Any]:
    """A credential: its iterations, salt and keys."""
    parts = (credential.salt, credential.stored_key, credential.server_key)
    return [credential.iterations, *(base64.b64encode(part).decode() for part in parts)]


def credential_from_json(fields: list[Any]) -> ScramCredential:
    """The inverse of `credential_to_json`."""
    salt, stored_key, server_key = map(base64.b64decode, fields[1:])
    return ScramCredential(iterations=fields[0], salt=salt, stored_key=stored_key, server_key=server_key)


def _scram_to_json(record: ScramCredentialRecord) -> dict[str, Any]:
    credential = None if record.credential is None else credential_to_json(record.credential)
    return {"u": record.owner.user, "m": record.owner.mechanism, "c": credential}


def _scram_from_json(payload: dict[str, Any]) -> ScramCredentialRecord:
    fields = payload["c"]
    return ScramCredentialRecord(
        owner=ScramOwner(payload["u"], ScramMechanism(payload["m"])),
        credential=None if fields is None else credential_from_json(fields),
    )


_FORMS: Final[dict[type, _Form]] = {
    ClusterRecord: _Form("cluster", lambda r: {"id": r.cluster_id}, lambda p: ClusterRecord(cluster_id=p["id"])),
    ControllerChangeRecord: _Form(
        "controller",
        lambda r: {"n": r.controller_id, "e": r.epoch},
        lambda p: ControllerChangeRecord(controller_id=p["n"], epoch=p["e"]),
    ),
    RegisterBrokerRecord: _Form("register-broker", _register_to_json, _register_from_json, newest=1),
    BrokerChangeRecord: _Form(
        "broker-change",
        _broker_change_to_json,
        _broker_change_from_json,
        newest=1,
    ),
    UnregisterBrokerRecord: _Form(
        "unregister-broker",
        lambda r: {"n": r.node_id, "e": r.broker_epoch},
        lambda p: UnregisterBrokerRecord(node_id=p["n"], broker_epoch=p["e"]),
    ),
    TopicRecord: _Form(
        "topic",
        lambda r: {"n": r.name, "t": _topic_text(r.topic_id)},
        lambda p: TopicRecord(name=p["n"], topic_id=_topic_id(p["t"])),
    ),
    PartitionRecord: _Form("partition", _partition_to_json, _partition_from_json),
    PartitionChangeRecord: _Form("partition-change", _partition_change_to_json, _partition_change_from_json, newest=1),
    ReplicaDirectoryRecord: _Form("replica-directory", _directory_to_json, _directory_from_json),
    RemoveTopicRecord: _Form(
        "remove-topic",
        lambda r: {"t": _topic_text(r.topic_id)},
        lambda p: RemoveTopicRecord(topic_id=_topic_id(p["t"])),
    ),
    ConfigRecord: _Form("config", _config_to_json, _config_from_json),
    ProducerIdsRecord: _Form(
        "producer-ids",
        lambda r: {"n": r.node_id, "e": r.broker_epoch, "x": r.next_producer_id},
        lambda p: ProducerIdsRecord(node_id=p["n"], broker_epoch=p["e"], next_producer_id=p["x"]),
    ),
    ClientQuotaRecord: _Form("client-quota", lambda r: {"e": r.entity, "k": r.key, "x": r.value}, _quota_from_json),
    ScramCredentialRecord: _Form("scram", _scram_to_json, _scram_from_json),
    FeatureLevelRecord: _Form(
        "feature", lambda r: {"n": r.name, "x": r.level}, lambda p: FeatureLevelRecord(name=p["n"], level=p["x"])
    ),
}
_BY_NAME: Final = {form.name: form for form in _FORMS.values()}


def encode_record(record: MetadataRecord) -> tuple[str, str]:
    """The type and the payload columns of a record."""
    form = _FORMS[type(record)]
    return form.name, _dump(form.to_json(record))


def decode_record(record_type: str, payload: str) -> MetadataRecord:
    """The inverse of `encode_record`. Raises UnknownRecord."""
    form = _BY_NAME.get(record_type)
    fields = json.loads(payload)
    if form is None or not 0 <= fields.get("v", 0) <= form.newest:
        raise UnknownRecord(
            f"The metadata log holds a record of type {record_type!r}, version {fields.get('v', 0)}, "
            "which this version of Strandline does not know. It was written by a newer version; start that one."
        )
    return form.from_json(fields)
