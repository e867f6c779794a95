"""BrokerRegistration (versions 0 to 4), BrokerHeartbeat (0 to 2), AllocateProducerIds (0), AlterPartition (2 and 3),
AssignReplicasToDirs (0).

Brokers ask the controller. They may register and live, get producer ids, change the in-sync sets of partitions that
they lead, and say in which log directories their replicas are.

Served by the broker that is the active controller, on the listeners it has as a broker; any other answers
NOT_CONTROLLER. A broker that migrates from ZooKeeper gets BROKER_ID_NOT_REGISTERED, as from Kafka.

Known gaps: cordoned directories in a heartbeat are not looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from strandline.errors import BrokerIdNotRegistered, StrandlineError, UnsupportedVersion
from strandline.metadata import (
    Controller,
    directories_response,
    directory_assignments_of,
    heartbeat_of,
    isr_changes_of,
    isr_response,
    registration_of,
)
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from strandline.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from strandline.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

logger = logging.getLogger(__name__)


class BrokersHandler:
    """Lets other brokers be members of the cluster."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.BROKER_REGISTRATION: self.register,
            ApiKey.BROKER_HEARTBEAT: self.heartbeat,
            ApiKey.ALLOCATE_PRODUCER_IDS: self.allocate_producer_ids,
            ApiKey.ALTER_PARTITION: self.alter_partition,
            ApiKey.ASSIGN_REPLICAS_TO_DIRS: self.assign_replicas_to_dirs,
        }

    async def register(self, request: BrokerRegistrationRequest, context: RequestContext) -> BrokerRegistrationResponse:
        """A broker starts."""
        try:
            if request.is_migrating_zk_broker:
                raise BrokerIdNotRegistered("Brokers that migrate from ZooKeeper cannot be registered.")
            epoch = await self._controller.register_broker(registration_of(request))
        except UnsupportedVersion as error:
            logger.warning("%s", error)  # the answer has no room for a sentence
            code, _ = outcome(error)
            return BrokerRegistrationResponse(error_code=code)
        except StrandlineError as error:
            code, _ = outcome(error)
            return BrokerRegistrationResponse(error_code=code)
        return BrokerRegistrationResponse(broker_epoch=epoch)

    async def heartbeat(self, request: BrokerHeartbeatRequest, context: RequestContext) -> BrokerHeartbeatResponse:
        """A broker is alive, and may want to be fenced, unfenced or to stop."""
        try:
            reply = await self._controller.broker_heartbeat(heartbeat_of(request))
        except StrandlineError as error:
            code, _ = outcome(error)
            return BrokerHeartbeatResponse(error_code=code)
        return BrokerHeartbeatResponse(
            is_caught_up=reply.is_caught_up, is_fenced=reply.is_fenced, should_shut_down=reply.should_shut_down
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, context: RequestContext
    ) -> AllocateProducerIdsResponse:
        """A broker needs producer ids."""
        try:
            block = await self._controller.allocate_producer_ids(request.broker_id, request.broker_epoch)
        except StrandlineError as error:
            code, _ = outcome(error)
            return AllocateProducerIdsResponse(error_code=code)
        return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))

    async def alter_partition(self, request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
        """A leader asks for other in-sync sets."""
        try:
            changes = isr_changes_of(request)
            answers = await self._controller.alter_partition(request.broker_id, request.broker_epoch, changes)
        except StrandlineError as error:
            code, _ = outcome(error)
            return AlterPartitionResponse(error_code=code)
        return isr_response(changes, answers, lambda error: outcome(error)[0])

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, context: RequestContext
    ) -> AssignReplicasToDirsResponse:
        """A broker has its replicas in these log directories."""
        assignments = directory_assignments_of(request)
        try:
            answers = await self._controller.assign_directories(request.broker_id, request.broker_epoch, assignments)
        except StrandlineError as error:
            code, _ = outcome(error)
            return AssignReplicasToDirsResponse(error_code=code)
        return directories_response(assignments, answers, lambda error: outcome(error)[0])
