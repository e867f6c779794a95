"""The brokers of the cluster as its controller knows them: they register, send heartbeats, and leave."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from strandline.errors import BrokerIdNotRegistered, DuplicateBrokerRegistration, StrandlineError
from strandline.metadata.controller.death_watch import DeathWatch
from strandline.metadata.controller.fencing import MetadataWriter
from strandline.metadata.controller.sessions import Sessions
from strandline.metadata.image import BrokerImage, Images, MetadataImage
from strandline.metadata.plans.directories import AssignedDirectories, DirectoryPlanner
from strandline.metadata.plans.membership import (
    AcceptedBroker,
    BrokerState,
    MembershipPlanner,
    checked_broker,
    next_state,
    state_of,
)
from strandline.metadata.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
    DirectoryAssignment,
    HeartbeatReply,
    Plan,
)

logger = logging.getLogger(__name__)


class Members:
    """Answers what brokers ask of the controller about themselves."""

    def __init__(
        self,
        controller: MetadataWriter,
        images: Images,
        sessions: Sessions,
        watch: DeathWatch,
        membership: MembershipPlanner,
        directories: DirectoryPlanner,
    ) -> None:
        self._controller, self._images, self._sessions = controller, images, sessions
        self._watch, self._membership, self._directories = watch, membership, directories

    async def register(self, broker: BrokerRegistration) -> int:
        """Register a starting broker, fenced; its epoch. Raises DuplicateBrokerRegistration, InconsistentClusterId.

        The session of an earlier process need not be over if this one has the broker's name in the database.
        """

        def is_taken(image: MetadataImage) -> bool:
            known = image.brokers.get(broker.node_id)
            return (
                known is not None
                and known.incarnation_id != broker.incarnation_id
                and not known.in_controlled_shutdown
                and self._sessions.is_valid(known.node_id, known.epoch)
            )

        self._controller.leadership.require()
        may_replace = is_taken(self._images.image) and await self._watch.is_process_of(
            broker.node_id, broker.incarnation_id
        )

        def decide(image: MetadataImage) -> Plan[AcceptedBroker]:
            if is_taken(image) and not may_replace:
                raise DuplicateBrokerRegistration(
                    f"Another broker is registered with the id {broker.node_id}, and its session has not expired."
                )
            return self._membership.register(image, broker)

        accepted = await self._controller.write(decide)
        if accepted.losses:
            logger.error("%s", accepted.losses)
        self._sessions.touch(broker.node_id, accepted.epoch)
        return accepted.epoch

    async def heartbeat(self, heartbeat: BrokerHeartbeat) -> HeartbeatReply:
        """Extend the broker's session and move it to the state it asks for, if it may. Raises StaleBrokerEpoch."""

        def state_after(image: MetadataImage) -> tuple[BrokerImage, BrokerState]:
            broker = checked_broker(image, heartbeat.node_id, heartbeat.broker_epoch)
            is_seen = self._sessions.is_shutdown_seen(heartbeat.node_id, image)
            return broker, next_state(image, broker, heartbeat, is_shutdown_seen=is_seen)

        def decide(image: MetadataImage) -> Plan[BrokerState]:
            broker, state = state_after(image)
            return Plan(self._membership.change_state(image, broker, state), state)

        self._controller.leadership.require()
        checked_broker(self._images.image, heartbeat.node_id, heartbeat.broker_epoch)
        self._sessions.touch(
            heartbeat.node_id, heartbeat.broker_epoch, heartbeat.current_metadata_offset, self._images.image.offset
        )
        broker, state = state_after(self._images.image)
        if self._directories.newly_failed(self._images.image, broker, heartbeat.failed_log_dirs):
            await self._note_failed(heartbeat)
        if state is not state_of(broker):  # most heartbeats change nothing, and need no write
            state = await self._controller.write(decide)
        if state is BrokerState.CONTROLLED_SHUTDOWN:
            self._sessions.begin_shutdown(heartbeat.node_id, self._images.image.offset)
        elif state is BrokerState.SHUTDOWN_NOW:
            self._sessions.forget(heartbeat.node_id)
        return HeartbeatReply(
            is_caught_up=heartbeat.current_metadata_offset >= heartbeat.broker_epoch,
            is_fenced=state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
            should_shut_down=state is BrokerState.SHUTDOWN_NOW,
        )

    async def _note_failed(self, heartbeat: BrokerHeartbeat) -> None:
        """Log directories of the broker have failed: what it led there gets other leaders."""

        def decide(image: MetadataImage) -> Plan[int]:
            broker = checked_broker(image, heartbeat.node_id, heartbeat.broker_epoch)
            records = self._directories.fail(image, broker, heartbeat.failed_log_dirs)
            return Plan(records, len(records))

        if await self._controller.write(decide):
            logger.warning("log directories of broker %d have failed", heartbeat.node_id)

    async def assign_directories(
        self, node_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> list[StrandlineError | None]:
        """A broker says in which log directories its replicas are. Raises StaleBrokerEpoch, UnsupportedVersion."""

        def decide(image: MetadataImage) -> Plan[AssignedDirectories]:
            return self._directories.assign(image, node_id, broker_epoch, assignments)

        assigned = await self._controller.write(decide)
        if assigned.losses:
            logger.error("%s", assigned.losses)
        return assigned.answers

    async def unregister(self, node_id: int) -> None:
        """Forget a broker that was stopped. Raises BrokerIdNotRegistered, and InvalidRequest for one that runs."""

        def decide(image: MetadataImage) -> Plan[None]:
            broker = image.brokers.get(node_id)
            if broker is None:
                raise BrokerIdNotRegistered(f"Broker ID {node_id} is not currently registered")
            return Plan(self._membership.unregister(image, broker), None)

        await self._controller.write(decide)
        self._sessions.forget(node_id)
