"""The membership of a broker: it registers, is unfenced, sends heartbeats, and shuts down in a controlled way.

A heartbeat is sent at every interval, and at once when the metadata shows that there is another controller, which has
not heard of this broker yet, or that this broker was fenced although it lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from strandline.clock import Clock
from strandline.config import ClusterSettings
from strandline.errors import BrokerIdNotRegistered, DuplicateBrokerRegistration, StaleBrokerEpoch, StrandlineError
from strandline.metadata.broker.failed_directories import FailedDirectories
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import MetadataImage
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.requests import BrokerHeartbeat, BrokerRegistration, HeartbeatReply
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.25
_SHUTDOWN_RETRY_SECONDS: Final = 0.05


class ControllerChannel(Protocol):
    """How a broker reaches the active controller, in its own process or over the network.

    Calls raise StrandlineErrors; retriable ones (NotController, RequestTimedOut) may be repeated.
    """

    async def register_broker(self, broker: BrokerRegistration) -> int:
        """Register. Returns the broker's epoch."""

    async def broker_heartbeat(self, heartbeat: BrokerHeartbeat) -> HeartbeatReply:
        """Send a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleStatus:
    """What an operator sees of this broker's membership."""

    node_id: int
    broker_epoch: int
    is_registered: bool
    is_fenced: bool
    is_shutting_down: bool


class BrokerLifecycle:
    """Keeps one broker a member of its cluster.

    `running()` registers (fenced) and sends heartbeats while it lasts; `unfence()` returns when the controller lets the
    broker lead; `confirm()` returns when the controller has just said what this broker is, and the broker has followed;
    `shut_down()` returns when its partitions have other leaders, or no broker is left to lead them. If the broker was
    unregistered or another process took its id, `on_lost` is told why, and the broker must stop.
    """

    def __init__(
        self,
        channel: ControllerChannel,
        loader: MetadataLoader,
        registration: BrokerRegistration,
        settings: ClusterSettings,
        clock: Clock,
        *,
        on_lost: Callable[[str], None],
        failed_directories: FailedDirectories | None = None,
    ) -> None:
        self._channel, self._loader, self._registration = channel, loader, registration
        self._settings, self._clock, self._on_lost = settings, clock, on_lost
        self._failed = failed_directories or FailedDirectories(tuple, clock, patience=0.0)
        self._is_lost = False
        self._epoch = -1
        self._controller_epoch = -1
        self._is_fenced = True
        self._want_fence = True
        self._want_shut_down = False
        self._trouble = ""
        self._wake = asyncio.Event()
        self._stopping = False
        self._turn = asyncio.Lock()

    @property
    def registration(self) -> BrokerRegistration:
        """What this broker says of itself."""
        return self._registration

    @property
    def broker_epoch(self) -> int:
        """The epoch of the registration; -1 before it."""
        return self._epoch

    @property
    def is_fenced(self) -> bool:
        """True until the controller lets the broker lead, and again when its session has expired."""
        return self._is_fenced

    def status(self) -> LifecycleStatus:
        """The membership now."""
        return LifecycleStatus(
            node_id=self._registration.node_id,
            broker_epoch=self._epoch,
            is_registered=self._epoch >= 0,
            is_fenced=self._is_fenced,
            is_shutting_down=self._want_shut_down,
        )

    async def register(self) -> int:
        """Register with the controller; wait for one if there is none. Raises the last error after the timeout."""
        deadline = self._clock.monotonic() + self._settings.initial_broker_registration_timeout_ms / 1000
        while True:
            try:
                self._epoch = await self._channel.register_broker(self._registration)
            except StrandlineError as error:
                # The session of an earlier incarnation may not have expired yet.
                is_passing = error.retriable or isinstance(error, DuplicateBrokerRegistration)
                if not is_passing or self._clock.monotonic() >= deadline:
                    raise
                if str(error) != self._trouble:
                    logger.info("cannot register yet: %s", error)
                self._trouble = str(error)
                await self._clock.wait_set(self._wake, within=_RETRY_SECONDS)
                self._wake.clear()
            else:
                logger.info("registered broker %d with epoch %d", self._registration.node_id, self._epoch)
                return self._epoch

    async def unfence(self) -> None:
        """Ask to lead partitions, and return when it is granted."""
        self._want_fence = False
        while self._is_fenced:
            if self._loader.image.offset < self._epoch:
                await self._loader.catch_up()
            if not await self._try_heartbeat():
                await self._clock.sleep(_RETRY_SECONDS)

    async def shut_down(self, within: float) -> bool:
        """Hand leadership over. True if the controller finished in `within` seconds; the caller stops either way."""
        if self._epoch < 0 or self._is_lost:
            return True
        self._want_shut_down = True
        deadline = self._clock.monotonic() + within
        while True:
            reply = await self._try_heartbeat()
            if reply is not None and reply.should_shut_down:
                return True
            if self._clock.monotonic() >= deadline:
                logger.warning("the controller did not finish the controlled shutdown in time")
                return False
            await self._clock.sleep(_SHUTDOWN_RETRY_SECONDS)

    def directory_failed(self) -> None:
        """A log directory has failed: the controller hears of it at once."""
        self._wake.set()

    async def confirm(self) -> None:
        """Return when a heartbeat that is sent from now on was answered, and what was decided before is followed.

        Raises the errors with which the cluster does not take the broker for a member.
        """
        while await self._try_heartbeat() is None:
            await self._clock.sleep(_RETRY_SECONDS)
        while True:
            try:
                await self._loader.catch_up()
            except SqlError as error:
                logger.info("the newest metadata cannot be read yet: %s", error)
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                return

    async def heartbeat(self) -> HeartbeatReply:
        """One heartbeat with the state that the broker wants now."""
        failed = self._failed.all()
        async with self._turn:
            reply = await self._channel.broker_heartbeat(
                BrokerHeartbeat(
                    node_id=self._registration.node_id,
                    broker_epoch=self._epoch,
                    current_metadata_offset=self._loader.image.offset,
                    want_fence=self._want_fence,
                    want_shut_down=self._want_shut_down,
                    failed_log_dirs=failed,
                )
            )
        self._failed.told(failed)
        if reply.is_fenced and not self._is_fenced and not self._want_shut_down:
            logger.warning("broker %d was fenced", self._registration.node_id)
        self._is_fenced, self._trouble = reply.is_fenced, ""
        return reply

    async def _try_heartbeat(self) -> HeartbeatReply | None:
        try:
            return await self.heartbeat()
        except StrandlineError as error:
            if isinstance(error, StaleBrokerEpoch | BrokerIdNotRegistered) or not error.retriable:
                raise
            if str(error) != self._trouble:  # once, not with each attempt
                logger.info("the heartbeat was not answered, trying again: %s", error)
            self._trouble = str(error)
            return None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[BrokerLifecycle]:
        """Register, and send heartbeats while the block lasts."""
        self._controller_epoch = self._loader.image.controller_epoch
        stop_following = self._loader.subscribe(self._follow)
        try:
            await self.register()
            self._stopping = False
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._beat(), name="broker-heartbeats")
                yield self
                self._stopping = True
                self._wake.set()
        finally:
            stop_following()

    def _follow(self, _: MetadataDelta, image: MetadataImage) -> None:
        if image.controller_epoch != self._controller_epoch:
            self._controller_epoch = image.controller_epoch
            self._wake.set()
        own = image.brokers.get(self._registration.node_id)
        if own is not None and own.fenced and own.epoch == self._epoch and not self._is_fenced:
            self._wake.set()

    async def _beat(self) -> None:
        interval = self._settings.broker_heartbeat_interval_ms / 1000
        while not self._stopping:
            await self._clock.wait_set(self._wake, within=interval)
            self._wake.clear()
            if self._stopping or self._want_shut_down:
                continue
            try:
                await self._try_heartbeat()
                self._check_directories_told()
            except StrandlineError as error:
                self._is_lost = True
                self._on_lost(f"The cluster does not take broker {self._registration.node_id} for a member: {error}")
                return

    def _check_directories_told(self) -> None:
        if self._failed.is_overdue():
            self._on_lost(
                f"A log directory has failed, and the controller could not be told for {self._failed.patience:g} s "
                "(log.dir.failure.timeout.ms): other brokers cannot take over what is in it."
            )
