"""Offsets of a group at its coordinator: those it has, new ones, and their deletion.

Share groups keep theirs apart, as the offset where each partition starts, and have APIs of their own for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from strandline.admin.commands.groups.kinds import SHARE, GroupView
from strandline.client import CommandFailed, Pair, check, explain
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from strandline.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from strandline.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

# Later versions of OffsetFetch and OffsetCommit name topics by id only.
_LAST_WITH_TOPIC_NAMES: Final = 9
_FIRST_WITH_GROUPS: Final = 8


class GroupOffset(NamedTuple):
    """Where a group is in a partition. `lag` is None unless the coordinator counts it itself, as for share groups."""

    offset: int
    lag: int | None = None


def group_offsets(coordinator: Client, group: str, view: GroupView | None) -> dict[Pair, GroupOffset]:
    """The offsets that the group has. Raises CommandFailed."""
    if view is not None and view.kind == SHARE:
        return _share_offsets(coordinator, group)
    return _committed(coordinator, group)


def write_offsets(coordinator: Client, group: str, view: GroupView | None, offsets: Mapping[Pair, int]) -> None:
    """Give a group without members these offsets. Raises CommandFailed, naming the partitions that were refused."""
    if view is not None and view.kind == SHARE:
        _alter_share(coordinator, group, offsets)
    else:
        _commit(coordinator, group, offsets)


def delete_offsets(coordinator: Client, group: str, view: GroupView | None, pairs: Collection[Pair]) -> None:
    """Make a group forget its offsets of these partitions. Raises CommandFailed.

    Share groups forget whole topics: a part of one is refused.
    """
    if view is not None and view.kind == SHARE:
        _delete_share(coordinator, group, pairs)
    else:
        _delete_committed(coordinator, group, pairs)


def by_topic(pairs: Collection[Pair]) -> dict[str, list[int]]:
    """The partitions of each topic, in order."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(pairs):
        topics[topic].append(partition)
    return dict(topics)


def _committed(coordinator: Client, group: str) -> dict[Pair, GroupOffset]:
    version = min(_LAST_WITH_TOPIC_NAMES, coordinator.version_of(ApiKey.OFFSET_FETCH))
    wanted = OffsetFetchRequestGroup(group_id=group, topics=None)
    request = OffsetFetchRequest(group_id=group, topics=None, groups=[wanted])
    answer = coordinator.request(ApiKey.OFFSET_FETCH, request, version=version)
    holder = answer.groups[0] if version >= _FIRST_WITH_GROUPS else answer
    if holder.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    check(holder.error_code, None, f"The offsets of group {group} cannot be read")
    return {
        (topic.name, row.partition_index): GroupOffset(row.committed_offset)
        for topic in holder.topics
        for row in topic.partitions
        if row.error_code == ErrorCode.NONE and row.committed_offset >= 0
    }


def _commit(coordinator: Client, group: str, offsets: Mapping[Pair, int]) -> None:
    version = min(_LAST_WITH_TOPIC_NAMES, coordinator.version_of(ApiKey.OFFSET_COMMIT))
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(partition_index=number, committed_offset=offsets[topic, number])
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(group_id=group, topics=topics)
    answer = coordinator.request(ApiKey.OFFSET_COMMIT, request, version=version)
    codes = {(topic.name, row.partition_index): row.error_code for topic in answer.topics for row in topic.partitions}
    _check_all(codes, f"Offsets of group {group} were not written")


def _delete_committed(coordinator: Client, group: str, pairs: Collection[Pair]) -> None:
    topics = [
        OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
        )
        for topic, numbers in by_topic(pairs).items()
    ]
    answer = coordinator.request(ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id=group, topics=topics))
    check(answer.error_code, None, f"Offsets of group {group} were not deleted")
    codes = {(topic.name, row.partition_index): row.error_code for topic in answer.topics for row in topic.partitions}
    _check_all(codes, f"Offsets of group {group} were not deleted")


def _share_offsets(coordinator: Client, group: str) -> dict[Pair, GroupOffset]:
    if not coordinator.offers(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS):
        return {}
    wanted = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[wanted])
    found = coordinator.request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request).groups[0]
    check(found.error_code, found.error_message, f"The offsets of share group {group} cannot be read")
    return {
        (topic.topic_name, row.partition_index): GroupOffset(row.start_offset, row.lag if row.lag >= 0 else None)
        for topic in found.topics
        for row in topic.partitions
        if row.error_code == ErrorCode.NONE and row.start_offset >= 0
    }


def _alter_share(coordinator: Client, group: str, offsets: Mapping[Pair, int]) -> None:
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=topic,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=offsets[topic, number])
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
    request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
    answer = coordinator.request(ApiKey.ALTER_SHARE_GROUP_OFFSETS, request)
    what = f"Offsets of share group {group} were not written"
    check(answer.error_code, answer.error_message, what)
    rows = [(topic.topic_name, row) for topic in answer.responses for row in topic.partitions]
    _check_all({(topic, row.partition_index): row.error_code for topic, row in rows}, what)


def _delete_share(coordinator: Client, group: str, pairs: Collection[Pair]) -> None:
    kept = by_topic(_share_offsets(coordinator, group).keys() - set(pairs))
    for topic, numbers in by_topic(pairs).items():
        if topic in kept:
            raise CommandFailed(
                f"A share group forgets whole topics: group {group} also has offsets of partitions "
                f"{_numbers(kept[topic])} of {topic}, beside {_numbers(numbers)}. Name the topic without partitions."
            )
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in by_topic(pairs)]
    request = DeleteShareGroupOffsetsRequest(group_id=group, topics=topics)
    answer = coordinator.request(ApiKey.DELETE_SHARE_GROUP_OFFSETS, request)
    what = f"Offsets of share group {group} were not deleted"
    check(answer.error_code, answer.error_message, what)
    for row in answer.responses:
        check(row.error_code, row.error_message, f"Offsets of {row.topic_name} in share group {group} were not deleted")


def _numbers(partitions: Collection[int]) -> str:
    return ",".join(str(number) for number in partitions)


def _check_all(codes: Mapping[Pair, int], what: str) -> None:
    """Raise CommandFailed for partitions that were refused: those with the first error, and how many were not."""
    refused = {pair: code for pair, code in codes.items() if code != ErrorCode.NONE}
    if not refused:
        return
    code = next(iter(refused.values()))
    alike = sorted(f"{topic}-{number}" for (topic, number), other in refused.items() if other == code)
    others = f" ({len(codes) - len(refused)} other partitions were done)" if len(codes) > len(refused) else ""
    raise CommandFailed(f"{what} for {', '.join(alike)}{others}: {explain(code, _hint(code))}")


def _hint(code: int) -> str | None:
    match code:
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.NON_EMPTY_GROUP:
            return "The group has members; stop them first"
        case ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
            return "Members of the group are subscribed to the topic; stop them first"
        case _:
            return None
