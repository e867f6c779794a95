"""Kafka's error codes, and the code of each of our errors."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from strandline import admin_errors, errors, share_errors
from strandline.errors import StrandlineError
from strandline.wire.primitives import MAX_STRING_LENGTH

_MOST_BYTES_OF_A_CHARACTER: Final = 4


class ErrorCode(IntEnum):
    """Kafka's number of each error."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def retriable(self) -> bool:
        """Whether a client that repeats the request may succeed."""
        return self in _RETRIABLE


_RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)

KAFKA_CODES: Final[Mapping[type[StrandlineError], ErrorCode]] = MappingProxyType(
    {
        StrandlineError: ErrorCode.UNKNOWN_SERVER_ERROR,
        errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
        errors.CorruptMessage: ErrorCode.CORRUPT_MESSAGE,
        errors.UnknownTopicOrPartition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        errors.InvalidFetchSize: ErrorCode.INVALID_FETCH_SIZE,
        errors.LeaderNotAvailable: ErrorCode.LEADER_NOT_AVAILABLE,
        errors.NotLeaderOrFollower: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        errors.RequestTimedOut: ErrorCode.REQUEST_TIMED_OUT,
        errors.MessageTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
        errors.OffsetMetadataTooLarge: ErrorCode.OFFSET_METADATA_TOO_LARGE,
        errors.CoordinatorLoadInProgress: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        errors.CoordinatorNotAvailable: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        errors.NotCoordinator: ErrorCode.NOT_COORDINATOR,
        errors.InvalidTopic: ErrorCode.INVALID_TOPIC_EXCEPTION,
        errors.RecordListTooLarge: ErrorCode.RECORD_LIST_TOO_LARGE,
        errors.NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
        errors.NotEnoughReplicasAfterAppend: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        errors.InvalidRequiredAcks: ErrorCode.INVALID_REQUIRED_ACKS,
        errors.IllegalGeneration: ErrorCode.ILLEGAL_GENERATION,
        errors.InconsistentGroupProtocol: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        errors.InvalidGroupId: ErrorCode.INVALID_GROUP_ID,
        errors.UnknownMemberId: ErrorCode.UNKNOWN_MEMBER_ID,
        errors.InvalidSessionTimeout: ErrorCode.INVALID_SESSION_TIMEOUT,
        errors.RebalanceInProgress: ErrorCode.REBALANCE_IN_PROGRESS,
        errors.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
        errors.UnsupportedVersion: ErrorCode.UNSUPPORTED_VERSION,
        errors.TransactionalIdAuthorizationFailed: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        errors.TopicAlreadyExists: ErrorCode.TOPIC_ALREADY_EXISTS,
        errors.InvalidPartitions: ErrorCode.INVALID_PARTITIONS,
        errors.InvalidReplicationFactor: ErrorCode.INVALID_REPLICATION_FACTOR,
        errors.InvalidReplicaAssignment: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        errors.InvalidConfig: ErrorCode.INVALID_CONFIG,
        errors.NotController: ErrorCode.NOT_CONTROLLER,
        errors.InvalidRequest: ErrorCode.INVALID_REQUEST,
        errors.UnsupportedForMessageFormat: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        errors.PolicyViolation: ErrorCode.POLICY_VIOLATION,
        errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        errors.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
        errors.InvalidTxnState: ErrorCode.INVALID_TXN_STATE,
        errors.InvalidProducerIdMapping: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        errors.InvalidTransactionTimeout: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        errors.ConcurrentTransactions: ErrorCode.CONCURRENT_TRANSACTIONS,
        errors.ProducerFenced: ErrorCode.PRODUCER_FENCED,
        errors.TransactionalIdNotFound: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        errors.TransactionAbortable: ErrorCode.TRANSACTION_ABORTABLE,
        errors.OperationNotAttempted: ErrorCode.OPERATION_NOT_ATTEMPTED,
        errors.TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        errors.KafkaStorageError: ErrorCode.KAFKA_STORAGE_ERROR,
        errors.NonEmptyGroup: ErrorCode.NON_EMPTY_GROUP,
        errors.GroupIdNotFound: ErrorCode.GROUP_ID_NOT_FOUND,
        errors.FetchSessionIdNotFound: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        errors.InvalidFetchSessionEpoch: ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        errors.TopicDeletionDisabled: ErrorCode.TOPIC_DELETION_DISABLED,
        errors.FencedLeaderEpoch: ErrorCode.FENCED_LEADER_EPOCH,
        errors.UnknownLeaderEpoch: ErrorCode.UNKNOWN_LEADER_EPOCH,
        errors.UnsupportedCompressionType: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        errors.StaleBrokerEpoch: ErrorCode.STALE_BROKER_EPOCH,
        errors.OffsetNotAvailable: ErrorCode.OFFSET_NOT_AVAILABLE,
        errors.MemberIdRequired: ErrorCode.MEMBER_ID_REQUIRED,
        errors.PreferredLeaderNotAvailable: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        errors.GroupMaxSizeReached: ErrorCode.GROUP_MAX_SIZE_REACHED,
        errors.FencedInstanceId: ErrorCode.FENCED_INSTANCE_ID,
        errors.EligibleLeadersNotAvailable: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        errors.ElectionNotNeeded: ErrorCode.ELECTION_NOT_NEEDED,
        errors.GroupSubscribedToTopic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        errors.InvalidRecord: ErrorCode.INVALID_RECORD,
        errors.UnstableOffsetCommit: ErrorCode.UNSTABLE_OFFSET_COMMIT,
        errors.InvalidUpdateVersion: ErrorCode.INVALID_UPDATE_VERSION,
        errors.UnknownTopicId: ErrorCode.UNKNOWN_TOPIC_ID,
        errors.DuplicateBrokerRegistration: ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        errors.BrokerIdNotRegistered: ErrorCode.BROKER_ID_NOT_REGISTERED,
        errors.InconsistentClusterId: ErrorCode.INCONSISTENT_CLUSTER_ID,
        errors.FetchSessionTopicIdError: ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        errors.IneligibleReplica: ErrorCode.INELIGIBLE_REPLICA,
        errors.NewLeaderElected: ErrorCode.NEW_LEADER_ELECTED,
        errors.OffsetMovedToTieredStorage: ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
        admin_errors.MismatchedEndpointType: ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        admin_errors.UnsupportedEndpointType: ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        errors.FencedMemberEpoch: ErrorCode.FENCED_MEMBER_EPOCH,
        errors.UnreleasedInstanceId: ErrorCode.UNRELEASED_INSTANCE_ID,
        errors.UnsupportedAssignor: ErrorCode.UNSUPPORTED_ASSIGNOR,
        errors.StaleMemberEpoch: ErrorCode.STALE_MEMBER_EPOCH,
        errors.InvalidRegistration: ErrorCode.INVALID_REGISTRATION,
        admin_errors.ReplicaNotAvailable: ErrorCode.REPLICA_NOT_AVAILABLE,
        admin_errors.UnsupportedSaslMechanism: ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        admin_errors.SecurityDisabled: ErrorCode.SECURITY_DISABLED,
        admin_errors.LogDirNotFound: ErrorCode.LOG_DIR_NOT_FOUND,
        admin_errors.NoReassignmentInProgress: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        admin_errors.ResourceNotFound: ErrorCode.RESOURCE_NOT_FOUND,
        admin_errors.DuplicateResource: ErrorCode.DUPLICATE_RESOURCE,
        admin_errors.UnacceptableCredential: ErrorCode.UNACCEPTABLE_CREDENTIAL,
        admin_errors.ThrottlingQuotaExceeded: ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        admin_errors.UnknownSubscriptionId: ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
        admin_errors.TelemetryTooLarge: ErrorCode.TELEMETRY_TOO_LARGE,
        errors.InvalidRegularExpression: ErrorCode.INVALID_REGULAR_EXPRESSION,
        share_errors.InvalidRecordState: ErrorCode.INVALID_RECORD_STATE,
        share_errors.ShareSessionNotFound: ErrorCode.SHARE_SESSION_NOT_FOUND,
        share_errors.InvalidShareSessionEpoch: ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        share_errors.ShareSessionLimitReached: ErrorCode.SHARE_SESSION_LIMIT_REACHED,
        share_errors.FencedStateEpoch: ErrorCode.FENCED_STATE_EPOCH,
    }
)


def error_code_of(error: BaseException) -> ErrorCode:
    """The code of an exception: by its class or the nearest base we know, else UNKNOWN_SERVER_ERROR."""
    for cls in type(error).__mro__:
        code = KAFKA_CODES.get(cls)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


_HEAD_BYTES: Final = 24_000
_CUT: Final = " … "


def message_of(error: StrandlineError) -> str:
    """The sentence of an error as an answer can carry it: a string of the protocol. It may name what a client has
    sent, which alone may be as long as a string can be; then the middle is left out."""
    sentence = str(error)
    if len(sentence) * _MOST_BYTES_OF_A_CHARACTER <= MAX_STRING_LENGTH:
        return sentence
    raw = sentence.encode("utf-8", "replace")
    if len(raw) <= MAX_STRING_LENGTH:
        return sentence
    tail_bytes = MAX_STRING_LENGTH - _HEAD_BYTES - len(_CUT.encode())
    return raw[:_HEAD_BYTES].decode("utf-8", "ignore") + _CUT + raw[-tail_bytes:].decode("utf-8", "ignore")


_CLASSES: Final = {code: cls for cls, code in KAFKA_CODES.items()}
_NUMBERS: Final = frozenset(code.value for code in ErrorCode)


def error_of(code: int, message: str | None = None) -> StrandlineError:
    """The exception of a code that another broker answered with; a code without one is a StrandlineError."""
    known = ErrorCode(code) if code in _NUMBERS else ErrorCode.UNKNOWN_SERVER_ERROR
    return _CLASSES.get(known, StrandlineError)(message or known.name)
