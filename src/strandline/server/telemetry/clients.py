"""The rules of GetTelemetrySubscriptions and PushTelemetry, and what is remembered of each client. Kafka's rules.

A client asks which metrics it is to push, and then pushes once in each interval. A client that pushes too early is told
to wait. One that pushes for a subscription that has changed is told to ask again. One that has said that a push is its
last is not heard any more.

A client is known by an id that the broker gives it. Clients that have been silent for three intervals are forgotten,
and the longest silent ones if there are very many.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from strandline.admin_errors import TelemetryTooLarge, ThrottlingQuotaExceeded, UnknownSubscriptionId
from strandline.clock import Clock, Ids
from strandline.config.client_metrics import CLIENT_INSTANCE_ID
from strandline.errors import CorruptMessage, InvalidRecord, InvalidRequest, StrandlineError, UnsupportedCompressionType
from strandline.metadata import Images
from strandline.model import ZERO_UUID, uuid_to_text
from strandline.records import Codec, decompress
from strandline.server.telemetry.figures import PushedFigures, PushedSample
from strandline.server.telemetry.otlp import MetricSample, read_metrics
from strandline.server.telemetry.subscriptions import ClientAttributes, Subscription, Subscriptions

MOST_INSTANCES: Final = 16_384
MOST_EXPANSION: Final = 16
"""How many times telemetry.max.bytes, which limits what is sent, a push may be when it is decompressed."""
_LEAST_MEMORY_SECONDS: Final = 60.0
_INTERVALS_REMEMBERED: Final = 3
_RESERVED_IDS: Final = (ZERO_UUID, UUID(int=1))
_ASK_AGAIN: Final = (UnknownSubscriptionId, UnsupportedCompressionType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """What a client pushes."""

    instance_id: UUID
    subscription_id: int
    is_last: bool
    compression: int
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryStatus:
    """What clients have pushed, and how their pushes ended (`accepted`, or the name of the error)."""

    instances: int = 0
    pushes: Mapping[str, int] = field(default_factory=dict)
    dropped_samples: int = 0
    samples: tuple[PushedSample, ...] = ()


class _Instance:
    """A client, and when it was heard, in monotonic seconds."""

    __slots__ = ("asked_at", "failed_with", "has_asked", "heard_at", "is_gone", "pushed_at", "subscription")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.asked_at = self.pushed_at = self.heard_at = -math.inf
        self.has_asked = self.is_gone = False
        self.failed_with: type[StrandlineError] | None = None

    @property
    def interval(self) -> float:
        return self.subscription.interval_ms / 1000

    @property
    def shown_until(self) -> float:
        """When its figures go. Those of a client that has gone stay long enough to be read once more."""
        return self.heard_at + _LEAST_MEMORY_SECONDS if self.is_gone else self.remembered_until

    @property
    def remembered_until(self) -> float:
        return self.heard_at + max(_LEAST_MEMORY_SECONDS, _INTERVALS_REMEMBERED * self.interval)

    def may_ask(self, now: float) -> bool:
        if now - max(self.asked_at, self.pushed_at) < self.interval and self.failed_with not in _ASK_AGAIN:
            return False
        self.asked_at, self.has_asked = now, True
        return True

    def may_push(self, now: float) -> bool:
        # The first push after a question may come at any time: clients spread their first pushes by chance.
        if not self.has_asked and now - self.pushed_at < self.interval:
            return False
        self.pushed_at, self.has_asked = now, False
        return True


class ClientTelemetry:
    """The clients of one broker that push metrics."""

    def __init__(self, images: Images, clock: Clock, ids: Ids, max_bytes: int) -> None:
        self._clock, self._ids, self.max_bytes = clock, ids, max_bytes
        self._subscriptions = Subscriptions(images)
        self._instances: OrderedDict[UUID, _Instance] = OrderedDict()
        self._figures = PushedFigures()
        self._pushes: Counter[str] = Counter()

    def subscribe(self, instance_id: UUID, client: ClientAttributes) -> tuple[UUID, Subscription]:
        """What a client is asked for, and its id: a new one for a client without. Raises ThrottlingQuotaExceeded."""
        if instance_id == ZERO_UUID:
            instance_id = self._ids.uuid()
        instance = self._instance(instance_id, client)
        if not instance.may_ask(self._clock.monotonic()):
            raise ThrottlingQuotaExceeded(f"Client {instance_id} asks for its subscription too often.")
        instance.failed_with = None
        return instance_id, instance.subscription

    async def push(self, push: Push, client: ClientAttributes, client_id: str) -> None:
        """Take the metrics of a client. Raises the refusal."""
        try:
            await self._push(push, client, client_id)
        except StrandlineError as error:
            self._pushes[type(error).__name__] += 1
            raise
        self._pushes["accepted"] += 1

    async def _push(self, push: Push, client: ClientAttributes, client_id: str) -> None:
        if push.instance_id in _RESERVED_IDS:
            raise InvalidRequest(f"{push.instance_id} is not the id of a client.")
        instance = self._instance(push.instance_id, client)
        try:
            self._check(push, instance)
            samples = await asyncio.to_thread(self._read, push)
        except StrandlineError as error:
            instance.failed_with = type(error)
            raise
        finally:
            instance.is_gone = push.is_last
        instance.failed_with = None
        now, until = self._clock.monotonic(), instance.shown_until
        self._figures.add(push.instance_id, client_id, samples, now=now, expires_at=until)

    def _check(self, push: Push, instance: _Instance) -> None:
        name = push.instance_id
        if instance.is_gone:
            raise InvalidRequest(f"Client {name} has pushed for the last time already.")
        if not instance.may_push(self._clock.monotonic()) and not push.is_last:
            raise ThrottlingQuotaExceeded(f"Client {name} pushes before its interval is over.")
        if push.subscription_id != instance.subscription.id:
            raise UnknownSubscriptionId(f"Client {name} pushes for a subscription that is not the current one.")
        if push.compression not in Codec.__members__.values():
            raise UnsupportedCompressionType(f"Kafka has no compression codec with the number {push.compression}.")
        if len(push.payload) > self.max_bytes:
            raise TelemetryTooLarge(
                f"Client {name} pushes {len(push.payload)} bytes; telemetry.max.bytes is {self.max_bytes}."
            )

    def _read(self, push: Push) -> list[MetricSample]:
        """In a thread: what is decompressed may be large."""
        limit = self.max_bytes * MOST_EXPANSION
        try:
            plain = decompress(Codec(push.compression), push.payload, limit) if push.payload else b""
        except CorruptMessage as error:
            raise InvalidRecord(f"The metrics of client {push.instance_id} cannot be decompressed: {error}") from error
        return read_metrics(plain)

    def _instance(self, instance_id: UUID, client: ClientAttributes) -> _Instance:
        """What is known of a client. A client whose subscription has changed begins anew."""
        now = self._clock.monotonic()
        self._forget_silent(now)
        attributes = {**client, CLIENT_INSTANCE_ID: uuid_to_text(instance_id)}
        subscription = self._subscriptions.of(instance_id, attributes)
        instance = self._instances.get(instance_id)
        if instance is None or instance.subscription != subscription:
            instance = self._instances[instance_id] = _Instance(subscription)
        self._instances.move_to_end(instance_id)
        instance.heard_at = now
        return instance

    def _forget_silent(self, now: float) -> None:
        while self._instances:
            oldest = next(iter(self._instances.values()))
            if oldest.remembered_until > now and len(self._instances) < MOST_INSTANCES:
                return
            self._instances.popitem(last=False)

    def status(self) -> TelemetryStatus:
        """What clients have pushed."""
        now = self._clock.monotonic()
        self._forget_silent(now)
        return TelemetryStatus(
            instances=len(self._instances),
            pushes=dict(self._pushes),
            dropped_samples=self._figures.dropped,
            samples=tuple(self._figures.shown(now)),
        )
