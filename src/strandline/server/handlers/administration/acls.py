"""DescribeAcls, CreateAcls and DeleteAcls, versions 1 to 3: SECURITY_DISABLED, since there is no authorizer yet.

Kafka answers the same when it has none. Every rule and filter of a request gets the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.admin_errors import SecurityDisabled
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from strandline.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from strandline.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

_CODE, _MESSAGE = outcome(SecurityDisabled("This cluster has no authorizer, so there are no access rules."))


class AclsHandler:
    """Says that there are no access rules."""

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_ACLS: self.describe_acls,
            ApiKey.CREATE_ACLS: self.create_acls,
            ApiKey.DELETE_ACLS: self.delete_acls,
        }

    async def describe_acls(self, request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
        return DescribeAclsResponse(error_code=_CODE, error_message=_MESSAGE)

    async def create_acls(self, request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
        results = [AclCreationResult(error_code=_CODE, error_message=_MESSAGE) for _ in request.creations]
        return CreateAclsResponse(results=results)

    async def delete_acls(self, request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
        results = [DeleteAclsFilterResult(error_code=_CODE, error_message=_MESSAGE) for _ in request.filters]
        return DeleteAclsResponse(filter_results=results)
