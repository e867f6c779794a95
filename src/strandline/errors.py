"""Errors that a client can see. Components raise them by meaning; `wire.errors` gives them Kafka's codes."""

from __future__ import annotations

from typing import ClassVar, NamedTuple


class RecordError(NamedTuple):
    """Why one record of a batch was refused."""

    batch_index: int
    message: str


class StrandlineError(Exception):
    """Base of every error we raise on purpose. Its text is a sentence for the client's user."""

    retriable: ClassVar[bool] = False


class OffsetOutOfRange(StrandlineError):
    """The offset is not within the range the partition holds."""


class CorruptMessage(StrandlineError):
    """The bytes of a batch do not match its checksum, size or format."""

    retriable = True


class UnknownTopicOrPartition(StrandlineError):
    """This broker does not know the topic or partition."""

    retriable = True


class InvalidFetchSize(StrandlineError):
    """The fetch asks for an impossible size."""


class LeaderNotAvailable(StrandlineError):
    """The partition has no leader at the moment."""

    retriable = True


class NotLeaderOrFollower(StrandlineError):
    """This broker does not hold the partition in the role the request needs."""

    retriable = True


class RequestTimedOut(StrandlineError):
    """The request did not finish within its time."""

    retriable = True


class MessageTooLarge(StrandlineError):
    """A batch is larger than max.message.bytes."""


class OffsetMetadataTooLarge(StrandlineError):
    """The metadata string of a committed offset is too long."""


class CoordinatorLoadInProgress(StrandlineError):
    """The coordinator is still reading its log."""

    retriable = True


class CoordinatorNotAvailable(StrandlineError):
    """The coordinator is not available."""

    retriable = True


class NotCoordinator(StrandlineError):
    """This broker does not coordinate the group or transactional id."""

    retriable = True


class InvalidTopic(StrandlineError):
    """The topic name is not legal, or the topic may not be used this way."""


class RecordListTooLarge(StrandlineError):
    """The batches of one request exceed segment.bytes."""


class NotEnoughReplicas(StrandlineError):
    """Fewer replicas are in sync than min.insync.replicas asks for."""

    retriable = True


class NotEnoughReplicasAfterAppend(StrandlineError):
    """The batch was written, but too few replicas are in sync."""

    retriable = True


class InvalidRequiredAcks(StrandlineError):
    """acks is none of -1, 0 and 1."""


class IllegalGeneration(StrandlineError):
    """The request names another generation of the group."""


class InconsistentGroupProtocol(StrandlineError):
    """The member shares no protocol with the others of its group."""


class InvalidGroupId(StrandlineError):
    """The group id is not legal."""


class UnknownMemberId(StrandlineError):
    """The group has no such member."""


class InvalidSessionTimeout(StrandlineError):
    """The session timeout is outside the range the broker allows."""


class RebalanceInProgress(StrandlineError):
    """The group is rebalancing; the member has to rejoin."""


class InvalidTimestamp(StrandlineError):
    """A record's timestamp is outside the limits of the topic."""

    record_errors: tuple[RecordError, ...] = ()


class UnsupportedVersion(StrandlineError):
    """This version of the API cannot do what the request asks for."""


class TopicAlreadyExists(StrandlineError):
    """A topic of that name exists."""


class InvalidPartitions(StrandlineError):
    """The number of partitions is not legal."""


class InvalidReplicationFactor(StrandlineError):
    """The replication factor is not possible with the brokers there are."""


class InvalidReplicaAssignment(StrandlineError):
    """The assignment of replicas to brokers is not legal."""


class InvalidConfig(StrandlineError):
    """A setting has an illegal name or value."""


class NotController(StrandlineError):
    """This broker is not the active controller."""

    retriable = True


class InvalidRequest(StrandlineError):
    """The request contradicts itself or the protocol."""


class UnsupportedForMessageFormat(StrandlineError):
    """The message format does not allow the request."""


class PolicyViolation(StrandlineError):
    """The request breaks a policy of the topic or cluster."""


class OutOfOrderSequence(StrandlineError):
    """A producer's sequence number does not follow the previous one."""


class InvalidProducerEpoch(StrandlineError):
    """The producer's epoch is older than the one known."""


class InvalidTxnState(StrandlineError):
    """The transaction is not in a state that allows the request."""


class InvalidProducerIdMapping(StrandlineError):
    """The transactional id is unknown, or has another producer id."""


class InvalidTransactionTimeout(StrandlineError):
    """The timeout of a transaction is not within what the broker allows."""


class ConcurrentTransactions(StrandlineError):
    """Another change of the same transaction is under way."""

    retriable = True


class ProducerFenced(StrandlineError):
    """Another producer has taken over the transactional id."""


class TransactionAbortable(StrandlineError):
    """The transaction cannot go on, and its producer has to abort it."""


class TransactionalIdNotFound(StrandlineError):
    """There is no such transactional id."""


class TransactionalIdAuthorizationFailed(StrandlineError):
    """The client may not use this transactional id."""


class OperationNotAttempted(StrandlineError):
    """Something else in the request was refused, so nothing of it was done."""


class TransactionCoordinatorFenced(StrandlineError):
    """A newer transaction coordinator has taken over."""


class KafkaStorageError(StrandlineError):
    """A log directory cannot be read or written."""

    retriable = True


class NonEmptyGroup(StrandlineError):
    """The group still has members."""


class GroupIdNotFound(StrandlineError):
    """There is no such group."""


class FetchSessionIdNotFound(StrandlineError):
    """The broker does not hold this fetch session."""

    retriable = True


class InvalidFetchSessionEpoch(StrandlineError):
    """The epoch of the fetch session is not the expected one."""

    retriable = True


class TopicDeletionDisabled(StrandlineError):
    """delete.topic.enable is false."""


class FencedLeaderEpoch(StrandlineError):
    """The request names a leader epoch that is over."""

    retriable = True


class UnknownLeaderEpoch(StrandlineError):
    """The request names a leader epoch that this broker does not know."""

    retriable = True


class UnsupportedCompressionType(StrandlineError):
    """The compression codec is not allowed in this request."""


class StaleBrokerEpoch(StrandlineError):
    """The broker's epoch is not the current one."""


class OffsetNotAvailable(StrandlineError):
    """The new leader does not know its high watermark yet."""

    retriable = True


class MemberIdRequired(StrandlineError):
    """The member has to join again with the id it was given."""


class PreferredLeaderNotAvailable(StrandlineError):
    """The preferred leader cannot lead now."""

    retriable = True


class GroupMaxSizeReached(StrandlineError):
    """The group has as many members as group.max.size allows."""


class FencedInstanceId(StrandlineError):
    """Another member uses this group.instance.id."""


class EligibleLeadersNotAvailable(StrandlineError):
    """No replica may become leader."""

    retriable = True


class ElectionNotNeeded(StrandlineError):
    """The partition already has that leader."""

    retriable = True


class GroupSubscribedToTopic(StrandlineError):
    """The group is subscribed to the topic."""


class InvalidRecord(StrandlineError):
    """A record breaks the rules of its topic."""

    record_errors: tuple[RecordError, ...] = ()


class UnstableOffsetCommit(StrandlineError):
    """Offsets of an open transaction are pending."""

    retriable = True


class InvalidUpdateVersion(StrandlineError):
    """The update was made against an old version."""


class DuplicateBrokerRegistration(StrandlineError):
    """Another broker is registered with this id."""


class BrokerIdNotRegistered(StrandlineError):
    """No broker is registered with this id."""


class UnknownTopicId(StrandlineError):
    """No topic has this id."""

    retriable = True


class InconsistentClusterId(StrandlineError):
    """The request is meant for another cluster."""


class FetchSessionTopicIdError(StrandlineError):
    """A fetch session mixes topic ids and topic names."""

    retriable = True


class IneligibleReplica(StrandlineError):
    """The replica may not join the in-sync set."""


class NewLeaderElected(StrandlineError):
    """The in-sync set was changed as proposed, and the proposing broker no longer leads the partition."""


class OffsetMovedToTieredStorage(StrandlineError):
    """The offset is in remote storage only."""


class FencedMemberEpoch(StrandlineError):
    """The member's epoch is not the one that the group has for it; the member has to join again."""


class UnreleasedInstanceId(StrandlineError):
    """A member that has not left uses this group.instance.id."""


class UnsupportedAssignor(StrandlineError):
    """The broker has no assignor of this name."""


class StaleMemberEpoch(StrandlineError):
    """The member's epoch is over; the member has to ask again with the one that its next heartbeat tells."""


class InvalidRegularExpression(StrandlineError):
    """The regular expression cannot be compiled."""


class InvalidRegistration(StrandlineError):
    """The registration of the broker is not complete."""
