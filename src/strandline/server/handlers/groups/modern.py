"""What the answers about consumer groups and share groups have in common: the same fields in classes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from strandline.coordinators.groups import DescribedModernGroup, HeartbeatResponse, Partitions
from strandline.metadata import MetadataImage
from strandline.server.handlers.common import GROUP_OPERATIONS, OPERATIONS_NOT_ASKED, outcome


def heartbeat_fields(answer: HeartbeatResponse) -> dict[str, Any]:
    """All fields but the assignment."""
    code, message = outcome(answer.error)
    return {
        "error_code": code,
        "error_message": message,
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval_ms": answer.heartbeat_interval_ms,
    }


def described_fields(group: DescribedModernGroup[Any], *, asks_for_operations: bool) -> dict[str, Any]:
    """All fields but the members."""
    code, message = outcome(group.error)
    return {
        "error_code": code,
        "error_message": message,
        "group_id": group.group_id,
        "group_state": "" if group.state is None else group.state.value,
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
        "assignor_name": group.assignor,
        "authorized_operations": GROUP_OPERATIONS if asks_for_operations and not code else OPERATIONS_NOT_ASKED,
    }


def named_topics(partitions: Partitions, image: MetadataImage) -> Iterator[tuple[UUID, str, list[int]]]:
    """Each topic with its name. Topics that were deleted meanwhile are left out: they have none."""
    for topic_id in sorted(partitions):
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            yield topic_id, topic.name, sorted(partitions[topic_id])
