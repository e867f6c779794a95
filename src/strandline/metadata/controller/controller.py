"""The controller: decides every change of metadata, writes it to the log, and publishes it.

Every broker has one; the one whose broker holds the lease is active, the others refuse with NotController. A change
is decided by pure code on the newest image (`metadata.plans`), appended in one transaction that checks the controller
epoch, and visible in the local image when the call returns.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from strandline.clock import Chance, Clock, Ids
from strandline.config import Settings
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.metadata.controller.asking import BrokerInquiry
from strandline.metadata.controller.carrying_out import carry_out
from strandline.metadata.controller.config_changes import ConfigChanges
from strandline.metadata.controller.death_watch import Inquiry
from strandline.metadata.controller.fencing import Fencing
from strandline.metadata.controller.leadership import Leadership, LeaseTiming, as_kafka_error
from strandline.metadata.controller.listening import ListeningTime
from strandline.metadata.controller.members import Members
from strandline.metadata.controller.quorum import QuorumStatus, describe_quorum
from strandline.metadata.controller.sessions import Sessions
from strandline.metadata.controller.switch_checks import NoSwitchChecks, SwitchChecks
from strandline.metadata.controller.upkeep import Upkeep
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.features import announced_features
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.log.store import ImageIsBehind, MetadataStore
from strandline.metadata.plans.configs import ConfigPlanner
from strandline.metadata.plans.directories import DirectoryPlanner
from strandline.metadata.plans.election_requests import plan_elections
from strandline.metadata.plans.elections import ElectionType, unclean_elections
from strandline.metadata.plans.features import FeatureWish, check_level, first_records, plan_features
from strandline.metadata.plans.isr import plan_isr_changes
from strandline.metadata.plans.membership import (
    MembershipPlanner,
    checked_broker,
)
from strandline.metadata.plans.quotas import QuotaAlteration, plan_quotas
from strandline.metadata.plans.reassignments import Reassignment, plan_reassignments
from strandline.metadata.plans.replica_growth import ReplicaGrowth
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.plans.scram import ScramDeletion, ScramUpsertion, plan_credentials
from strandline.metadata.plans.topics import TopicPlanner
from strandline.metadata.records import ProducerIdsRecord
from strandline.metadata.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
    ConfigAlteration,
    ConfigReplacement,
    DirectoryAssignment,
    HeartbeatReply,
    IsrChange,
    NewPartitions,
    NewTopic,
    Plan,
)
from strandline.model import TopicPartition, uuid_to_text
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

T = TypeVar("T")

PRODUCER_ID_BLOCK: Final = 1000
_NO_CHECKS: Final = NoSwitchChecks()
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatus:
    """What an operator sees of a controller."""

    node_id: int
    is_active: bool
    epoch: int
    metadata_offset: int
    unclean_elections: int
    """How many it has held since the broker was started."""


class Controller:
    """See the module. Per-item answers are a value or a StrandlineError; other failures are raised.

    Any call raises NotController when this broker is not the active controller, and RequestTimedOut when the
    database does not answer: the change may then have happened, and repeating the call is safe.
    """

    def __init__(
        self,
        store: MetadataStore,
        loader: MetadataLoader,
        settings: Settings,
        *,
        clock: Clock,
        ids: Ids,
        chance: Chance,
        timing: LeaseTiming | None = None,
        cluster_id: str | None = None,
        inquiry: Inquiry | None = None,
    ) -> None:
        self._store, self._loader, self._ids, self._clock = store, loader, ids, clock
        self._new_cluster_id = cluster_id
        self.node_id = settings.cluster.node_id
        rules = self._rules = ConfigRules(settings)
        self._topics = TopicPlanner(rules=rules, ids=ids, chance=chance)
        self._configs = ConfigChanges(ConfigPlanner(rules=rules), loader, self.write)
        membership = MembershipPlanner(rules)
        listening = ListeningTime(clock)
        self._sessions = Sessions(listening, settings.cluster.broker_session_timeout_ms / 1000)
        self._leadership = Leadership(store, loader, self.node_id, clock, timing or LeaseTiming())
        inquiry = inquiry or BrokerInquiry(self.node_id, loader, listener=settings.network.inter_broker_listener)
        fencing = Fencing(self, store.sql, loader, self._sessions, listening, inquiry, membership, clock)
        self._members = Members(self, loader, self._sessions, fencing.watch, membership, DirectoryPlanner(rules))
        self._upkeep = Upkeep(
            self,
            store,
            loader,
            fencing,
            listening,
            membership,
            ReplicaGrowth(rules),
            settings.cluster,
            clock,
        )
        self._turn = asyncio.Lock()
        self._unclean_elections = 0

    @property
    def is_active(self) -> bool:
        """True if this broker holds the lease, as far as it knows."""
        return self._leadership.term is not None

    @property
    def leadership(self) -> Leadership:
        """The lease."""
        return self._leadership

    @property
    def upkeep(self) -> Upkeep:
        """Its periodic work."""
        return self._upkeep

    def status(self) -> ControllerStatus:
        """The state now."""
        term = self._leadership.term
        image = self._loader.image
        epoch = image.controller_epoch if term is None else term.epoch
        return ControllerStatus(
            node_id=self.node_id,
            is_active=term is not None,
            epoch=epoch,
            metadata_offset=image.offset,
            unclean_elections=self._unclean_elections,
        )

    def quorum(self) -> QuorumStatus:
        """Which brokers keep the metadata log, and how far each has read it. Raises NotController."""
        term, image = self._leadership.require(), self._loader.image
        return describe_quorum(image, term, self._sessions.contact, now_ms=self._clock.now_ms())

    # Leadership

    async def activate(self, dead: frozenset[uuid.UUID] = frozenset()) -> bool:
        """Become the active controller if there is none. True if this one is active now.

        A controller is no more if its process is one of the `dead`.
        """
        if self.is_active:
            return True
        try:
            if not await self._leadership.take(dead):
                return False
        except SqlError as error:
            raise as_kafka_error(error) from error
        self._sessions.begin(self._loader.image)
        if not self._loader.image.cluster_id:
            cluster_id = self._new_cluster_id or uuid_to_text(self._ids.uuid())
            await self.write(lambda _: Plan(first_records(cluster_id, self._rules), None))
        return True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Controller]:
        """Compete for the lease and, while holding it, do the periodic work. Releases the lease at the end.

        The block begins when the cluster has an id, given by this controller or by another one. Raises
        StoreInUse if another process runs with this node id.
        """
        async with self._leadership.identity():
            await self.activate()
            async with self._upkeep.running():
                await self._cluster_id_known()
                yield self
            await self._retire()

    async def resign(self) -> None:
        """Release the lease for good, before this broker stops listening: else it would find all others silent."""
        await self._upkeep.stop()
        await self._retire()

    async def _cluster_id_known(self) -> None:
        known = asyncio.Event()

        def check(_: MetadataDelta, image: MetadataImage) -> None:
            if image.cluster_id:
                known.set()

        unsubscribe = self._loader.subscribe(check)
        try:
            await known.wait()
        finally:
            unsubscribe()

    async def _retire(self) -> None:
        try:
            await self._upkeep.finish()
            async with self._turn:
                await self._leadership.resign()
        except SqlError as error:
            logger.warning("the controller's lease was not released, it will expire: %s", error)

    async def write(self, decide: Callable[[MetadataImage], Plan[T]], *, validate_only: bool = False) -> T:
        """Decide on the newest image, write and publish the records, and return the answer.

        The effects of the plan are carried out in the same transaction; raises the error with which one refuses it.
        """
        async with self._turn:
            for _ in range(_ATTEMPTS):
                term = self._leadership.require()
                plan = decide(self._loader.image)
                check_level(self._loader.image, plan.records)
                together = partial(carry_out, plan.effects) if plan.effects else None
                if validate_only and together is not None:
                    await self._leadership.rehearse(together)
                if validate_only or (not plan.records and together is None):
                    return plan.answer
                try:
                    await self._leadership.append(term, plan.records, together)
                except ImageIsBehind:
                    await self._catch_up()
                else:
                    if unclean := unclean_elections(plan.records):
                        self._unclean_elections += unclean.partitions
                        logger.warning("%s", unclean)
                    return plan.answer
        raise RequestTimedOut("Other changes of the metadata came first, several times in a row. Try again.")

    async def _catch_up(self) -> None:
        try:
            await self._loader.catch_up()
        except SqlError as error:
            raise as_kafka_error(error) from error

    # Topics

    async def create_topics(
        self, topics: Sequence[NewTopic], validate_only: bool = False
    ) -> list[TopicImage | StrandlineError]:
        """Create topics. The answers are in the order of the request."""
        return await self.write(lambda image: self._topics.create(image, topics), validate_only=validate_only)

    async def delete_topics(self, topics: Sequence[str | uuid.UUID]) -> list[TopicImage | StrandlineError]:
        """Delete topics by name or id. The answers are the topics as they were."""
        return await self.write(lambda image: self._topics.delete(image, topics))

    async def create_partitions(
        self, wishes: Sequence[NewPartitions], validate_only: bool = False
    ) -> list[TopicImage | StrandlineError]:
        """Add partitions. The answers are the topics as they are afterwards."""
        return await self.write(lambda image: self._topics.add_partitions(image, wishes), validate_only=validate_only)

    # Settings

    async def alter_configs(
        self, wishes: Sequence[ConfigAlteration], validate_only: bool = False, checks: SwitchChecks = _NO_CHECKS
    ) -> list[StrandlineError | None]:
        """Set, delete, append to or subtract from settings. None: done."""
        return await self._configs.make(wishes, checks, validate_only=validate_only)

    async def replace_configs(
        self, wishes: Sequence[ConfigReplacement], validate_only: bool = False, checks: SwitchChecks = _NO_CHECKS
    ) -> list[StrandlineError | None]:
        """Give resources exactly these settings. None: done."""
        return await self._configs.make(wishes, checks, validate_only=validate_only)

    # What administrators keep in the metadata

    async def alter_quotas(
        self, wishes: Sequence[QuotaAlteration], validate_only: bool = False
    ) -> list[StrandlineError | None]:
        """Set and remove quotas of clients. None: done."""
        return await self.write(lambda image: plan_quotas(image, wishes), validate_only=validate_only)

    async def alter_credentials(
        self, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
    ) -> Mapping[str, StrandlineError | None]:
        """Remove and set SCRAM credentials. The answers are by user; None: done."""
        return await self.write(lambda image: plan_credentials(image, deletions, upsertions))

    async def update_features(self, wishes: Sequence[FeatureWish], validate_only: bool = False) -> None:
        """Give features other levels: all, or none. Raises InvalidUpdateVersion or InvalidRequest."""
        known = announced_features()
        await self.write(lambda image: plan_features(image, wishes, known, self._rules), validate_only=validate_only)

    # Partitions

    async def reassign(
        self, wishes: Sequence[Reassignment], *, may_change_factor: bool = True
    ) -> list[StrandlineError | None]:
        """Assign partitions to brokers. None: the partition is there."""
        return await self.write(lambda image: plan_reassignments(image, wishes, may_change_factor=may_change_factor))

    async def elect_leaders(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, StrandlineError | None]:
        """Elect leaders for these partitions; None: for all that need it, and only those are answered."""
        return await self.write(lambda image: plan_elections(image, election, partitions, self._rules))

    async def alter_partition(
        self, node_id: int, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> list[PartitionImage | StrandlineError]:
        """Change in-sync sets for their leader. Raises StaleBrokerEpoch."""
        return await self.write(lambda image: plan_isr_changes(image, node_id, broker_epoch, changes, self._rules))

    # Brokers

    async def register_broker(self, broker: BrokerRegistration) -> int:
        """Register a starting broker, fenced; its epoch. Raises DuplicateBrokerRegistration, InconsistentClusterId."""
        return await self._members.register(broker)

    async def broker_heartbeat(self, heartbeat: BrokerHeartbeat) -> HeartbeatReply:
        """Extend the broker's session and move it to the state it asks for, if it may. Raises StaleBrokerEpoch."""
        return await self._members.heartbeat(heartbeat)

    async def assign_directories(
        self, node_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> list[StrandlineError | None]:
        """A broker says in which log directories its replicas are. Raises StaleBrokerEpoch, UnsupportedVersion."""
        return await self._members.assign_directories(node_id, broker_epoch, assignments)

    async def unregister_broker(self, node_id: int) -> None:
        """Forget a broker that was stopped. Raises BrokerIdNotRegistered, and InvalidRequest for one that runs."""
        await self._members.unregister(node_id)

    async def allocate_producer_ids(self, node_id: int, broker_epoch: int) -> range:
        """A block of producer ids that no other broker gets. Raises StaleBrokerEpoch."""

        def decide(image: MetadataImage) -> Plan[range]:
            checked_broker(image, node_id, broker_epoch)
            block = range(image.next_producer_id, image.next_producer_id + PRODUCER_ID_BLOCK)
            record = ProducerIdsRecord(node_id=node_id, broker_epoch=broker_epoch, next_producer_id=block.stop)
            return Plan((record,), block)

        return await self.write(decide)
