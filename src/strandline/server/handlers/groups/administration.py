"""ListGroups 0-5, DescribeGroups 0-6, DeleteGroups 0-2: groups as administrators see them.

A group that does not exist is described as Dead, without an error up to version 5 and with GROUP_ID_NOT_FOUND after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from strandline.coordinators.groups import DescribedGroup as Description
from strandline.coordinators.groups import GroupCoordinator
from strandline.coordinators.groups import ListedGroup as GroupRow
from strandline.errors import GroupIdNotFound, StrandlineError
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import GROUP_OPERATIONS, OPERATIONS_NOT_ASKED, outcome
from strandline.tasks import map_in_turns
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from strandline.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_REPORTS_UNKNOWN_GROUP: Final = 6
# Some milliseconds of work.
_ROWS_PER_TURN: Final = 2_000


class GroupDeletions(Protocol):
    """Deletes groups, with all that is kept of them elsewhere."""

    async def delete_groups(self, group_ids: Sequence[str]) -> list[StrandlineError | None]:
        """One answer per group."""


class GroupAdminHandler:
    """Lists, describes and deletes the groups this broker coordinates."""

    def __init__(self, coordinator: GroupCoordinator, deletions: GroupDeletions) -> None:
        self._coordinator, self._deletions = coordinator, deletions

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.LIST_GROUPS: self.list_groups,
            ApiKey.DESCRIBE_GROUPS: self.describe_groups,
            ApiKey.DELETE_GROUPS: self.delete_groups,
        }

    async def list_groups(self, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
        try:
            groups = await self._coordinator.list_groups(request.states_filter, request.types_filter)
        except StrandlineError as error:
            code, _ = outcome(error)
            return ListGroupsResponse(error_code=code)
        return ListGroupsResponse(groups=await map_in_turns(_listed, groups, size=_ROWS_PER_TURN))

    async def describe_groups(self, request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
        operations = GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_NOT_ASKED
        return DescribeGroupsResponse(
            groups=[self._described(group_id, context.api_version, operations) for group_id in request.groups]
        )

    def _described(self, group_id: str, version: int, operations: int) -> DescribedGroup:
        try:
            group = self._coordinator.describe_group(group_id)
        except StrandlineError as error:
            code, message = outcome(error)
            return DescribedGroup(group_id=group_id, error_code=code, error_message=message)
        code, message = outcome(group.error)
        if isinstance(group.error, GroupIdNotFound) and version < _REPORTS_UNKNOWN_GROUP:
            code, message = ErrorCode.NONE, None
        return DescribedGroup(
            error_code=code,
            error_message=message,
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type,
            protocol_data=group.protocol_name,
            members=_members(group),
            authorized_operations=OPERATIONS_NOT_ASKED if code else operations,
        )

    async def delete_groups(self, request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
        names = list(dict.fromkeys(request.groups_names))
        results = await self._deletions.delete_groups(names)
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name, error_code=outcome(result)[0])
                for name, result in zip(names, results, strict=True)
            ]
        )


def _listed(group: GroupRow) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state.value,
        group_type=group.group_type.value,
    )


def _members(group: Description) -> list[DescribedGroupMember]:
    return [
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata,
            member_assignment=member.assignment,
        )
        for member in group.members
    ]
