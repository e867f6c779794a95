"""What members say about records, in ShareAcknowledge and along with ShareFetch: checked, and passed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from strandline.coordinators.share_states import SharePartitionKey
from strandline.errors import InvalidRequest, StrandlineError, UnknownTopicOrPartition
from strandline.metadata import Images
from strandline.server.handlers.common import each
from strandline.share_delivery.delivery import Acknowledgement, AcknowledgeType
from strandline.share_delivery.partitions import SharePartitions
from strandline.share_delivery.sessions import SessionKey, SharePlace

KNOWS_RENEWAL: Final = 2
"""From this version of ShareFetch and ShareAcknowledge on, members may ask for more time."""
_LONGEST_MEMBER_ID: Final = 36

Outcomes: TypeAlias = Mapping[SharePlace, StrandlineError | None]


class KnownLeader(NamedTuple):
    """Where a partition is led, for a client that asked the wrong broker."""

    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = -1
    rack: str | None = None


def leader_of(images: Images, place: SharePlace, listener: str) -> KnownLeader:
    """The leader of a partition, with its address on the client's listener if it has one there."""
    image = images.image
    topic = image.topics_by_id.get(place[0])
    partition = None if topic is None else topic.partition(place[1])
    if partition is None:
        return KnownLeader()
    broker = image.brokers.get(partition.leader)
    endpoint = None if broker is None else broker.listener(listener)
    if broker is None or endpoint is None:
        return KnownLeader(partition.leader, partition.leader_epoch)
    return KnownLeader(partition.leader, partition.leader_epoch, endpoint.host, endpoint.port, broker.rack)


def session_key(group_id: str | None, member_id: str | None) -> SessionKey:
    """Raises InvalidRequest."""
    if not member_id or len(member_id) > _LONGEST_MEMBER_ID:
        raise InvalidRequest(f"A member id has 1 to {_LONGEST_MEMBER_ID} characters; this is {member_id!r}.")
    if not group_id:
        raise InvalidRequest("The group id is empty.")
    return SessionKey(group_id, member_id)


def acknowledged(topics: Iterable[Any]) -> dict[SharePlace, list[Any]]:
    """The batches of a request that acknowledges records, by partition."""
    return {
        (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in topics
        for partition in topic.partitions
        if partition.acknowledgement_batches
    }


async def acknowledge_all(
    shares: SharePartitions, key: SessionKey, said: Mapping[SharePlace, list[Any]], *, version: int, is_renewal: bool
) -> Outcomes:
    """Pass on what a member says about records of several partitions. Each partition has its own outcome."""

    async def one(place: SharePlace, batches: list[Any]) -> StrandlineError | None:
        try:
            checked = _checked(batches, may_renew=version >= KNOWS_RENEWAL and is_renewal)
            found = shares.find(SharePartitionKey(key.group_id, *place))
            if found is None:
                raise UnknownTopicOrPartition("No member of the group has records of this partition.")
            await found.acknowledge(key.member_id, checked)
        except StrandlineError as error:
            return error
        return None

    outcomes = await each(one(place, batches) for place, batches in said.items())
    return dict(zip(said, outcomes, strict=True))


def _checked(batches: Iterable[Any], *, may_renew: bool) -> list[Acknowledgement]:
    """Raises InvalidRequest."""
    found: list[Acknowledgement] = []
    previous = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first < previous:
            raise InvalidRequest(f"Records {first} to {last} do not follow those before them.")
        if not types or len(types) not in (1, last - first + 1):
            raise InvalidRequest(f"Records {first} to {last} have {len(types)} acknowledge types, not one or one each.")
        most = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        if not all(AcknowledgeType.GAP <= kind <= most for kind in types):
            raise InvalidRequest(f"Records {first} to {last} are acknowledged in a way that this request cannot have.")
        found.append(Acknowledgement(first, last, [AcknowledgeType(kind) for kind in types]))
        previous = last
    return found
