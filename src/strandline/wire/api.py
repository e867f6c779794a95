"""Which of Kafka's APIs Strandline offers, and the form of their headers.

`KNOWN_APIS` is every API whose messages we can read and write, in every version; `API_VERSIONS` is what the broker
announces to its clients; `CONTROLLER_APIS` are the requests of brokers to the active controller. An API that is in
neither of the last two is answered by closing the connection, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from strandline.wire.messages.index import KNOWN_APIS, NEVER_FLEXIBLE, ApiKey, VersionRange

__all__ = [
    "API_VERSIONS",
    "BROKER_SOFTWARE",
    "CONTROLLER_APIS",
    "KNOWN_APIS",
    "NEVER_FLEXIBLE",
    "OLDEST_PRODUCE",
    "SERVED_APIS",
    "ApiKey",
    "VersionRange",
    "is_flexible",
    "response_header_version",
]

# Old librdkafka enables lz4 and zstd only if Produce version 0 is in the range (KAFKA-18659). So it is advertised
# from 0, and the connection is closed when a version below this one really arrives.
OLDEST_PRODUCE: Final = 3

_OFFERED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_GROUPS,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.UPDATE_FEATURES,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)

# Where the offer differs from the versions of the messages: InitProducerId 6 (two-phase commit) is not stable in Kafka.
_NARROWED: Final = {
    ApiKey.PRODUCE: VersionRange(0, KNOWN_APIS[ApiKey.PRODUCE].max, KNOWN_APIS[ApiKey.PRODUCE].first_flexible),
    ApiKey.INIT_PRODUCER_ID: VersionRange(0, 5, KNOWN_APIS[ApiKey.INIT_PRODUCER_ID].first_flexible),
}

API_VERSIONS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {key: _NARROWED.get(key, KNOWN_APIS[key]) for key in sorted(_OFFERED)}
)

# Served on the listeners of brokers, because a controller has none of its own. As in Kafka, clients are not offered
# them: only a peer that calls itself BROKER_SOFTWARE in its ApiVersions request is.
CONTROLLER_APIS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {
        key: KNOWN_APIS[key]
        for key in (
            ApiKey.ENVELOPE,
            ApiKey.BROKER_REGISTRATION,
            ApiKey.BROKER_HEARTBEAT,
            ApiKey.ALLOCATE_PRODUCER_IDS,
            ApiKey.ALTER_PARTITION,
            ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        )
    }
)
BROKER_SOFTWARE: Final = "strandline-broker"

SERVED_APIS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType({**API_VERSIONS, **CONTROLLER_APIS})


def is_flexible(api_key: ApiKey, version: int) -> bool:
    """Whether this version has compact types and tagged fields."""
    return version >= KNOWN_APIS[api_key].first_flexible


def response_header_version(api_key: ApiKey, version: int) -> int:
    """1 if the header ends in tagged fields, else 0. ApiVersions has none: a client reads it before it knows us."""
    return 1 if api_key is not ApiKey.API_VERSIONS and is_flexible(api_key, version) else 0
