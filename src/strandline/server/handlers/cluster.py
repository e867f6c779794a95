"""DescribeCluster, versions 0 to 2.

Answers for brokers only: Strandline's controller is one of the brokers and has no endpoint of its own, so a request
for controllers (endpoint type 2) gets MISMATCHED_ENDPOINT_TYPE. Fenced brokers are listed if version 2 asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.admin_errors import MismatchedEndpointType, UnsupportedEndpointType
from strandline.errors import StrandlineError
from strandline.metadata import Images
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


class ClusterHandler:
    """Describes the cluster: its brokers and its controller."""

    def __init__(self, images: Images) -> None:
        self._images = images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.DESCRIBE_CLUSTER: self.describe_cluster}

    async def describe_cluster(
        self, request: DescribeClusterRequest, context: RequestContext
    ) -> DescribeClusterResponse:
        """The brokers with their addresses on the listener of the request, and the controller."""
        if request.endpoint_type != BROKERS:
            code, message = outcome(_wrong_endpoint(request.endpoint_type))
            return DescribeClusterResponse(error_code=code, error_message=message, endpoint_type=request.endpoint_type)
        image = self._images.image
        brokers = []
        for node_id in sorted(image.brokers):
            broker = image.brokers[node_id]
            listener = broker.listener(context.listener)
            if listener is not None and (request.include_fenced_brokers or not broker.fenced):
                brokers.append(
                    DescribeClusterBroker(
                        broker_id=node_id,
                        host=listener.host,
                        port=listener.port,
                        rack=broker.rack,
                        is_fenced=broker.fenced,
                    )
                )
        return DescribeClusterResponse(
            cluster_id=image.cluster_id,
            controller_id=image.controller_id if image.is_active(image.controller_id) else -1,
            brokers=brokers,
            cluster_authorized_operations=(
                CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else OPERATIONS_NOT_ASKED
            ),
        )


def _wrong_endpoint(kind: int) -> StrandlineError:
    if kind == CONTROLLERS:
        return MismatchedEndpointType("The request was sent to a broker, but wants to know about controllers.")
    return UnsupportedEndpointType(f"There are no endpoints of type {kind}.")
