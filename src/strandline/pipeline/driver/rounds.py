"""When passes run: once until nothing is left, or repeatedly until the run is stopped."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from strandline.clock import Chance
from strandline.conversion_api.values import ListTriggers, RenewClaims
from strandline.model import TopicIdPartition
from strandline.pipeline.client import BrokersUnavailable, RequestRefused
from strandline.pipeline.driver.merger import Merger
from strandline.pipeline.driver.splitter import Splitter
from strandline.pipeline.driver.world import RunWorld, together

logger = logging.getLogger(__name__)

RENEWALS: Final = 3
"""Claims are renewed so often before they expire."""
TRIGGER_POLL_SECONDS: Final = 2.0
"""How often the brokers are asked whether an operator has triggered a topic."""
_MS: Final = 1000
_SOONEST_MS: Final = 1000


async def run_once(world: RunWorld) -> None:
    """Convert what is eligible now. Raises BrokersUnavailable, RequestRefused."""
    renewing = asyncio.create_task(_renew(world))
    try:
        await Splitter(world).run_pass()
        await Merger(world).run_pass()
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


async def follow(world: RunWorld, chance: Chance) -> None:
    """Convert what becomes eligible, until it is cancelled. Brokers may come and go."""
    await _Following(world, chance).run()


class _PassKind(enum.Enum):
    """What can fail as a whole. Not text, as the keys of WAL objects are: those are forgotten when they are gone."""

    SPLITTING = "Splitting"
    MERGING = "Merging"


class _Following:
    """Splits and merges at their intervals; and at once when a topic is triggered."""

    def __init__(self, world: RunWorld, chance: Chance) -> None:
        self._world = world
        self._splitter, self._merger = Splitter(world), Merger(world)
        self._split_now, self._merge_now = asyncio.Event(), asyncio.Event()
        # By topic, the moment of the trigger: seen, split since, and split and merged since.
        self._triggered: dict[str, int] = {}
        self._split: dict[str, int] = {}
        self._merged: dict[str, int] = {}
        settings = world.settings
        # Several drivers that start at the same time do not ask the brokers at the same time.
        self._split_delay = chance.below(settings.splitter_interval_ms) / _MS
        self._merge_delay = (settings.merger_initial_delay_ms + chance.below(settings.merger_interval_ms)) / _MS

    async def run(self) -> None:
        world = self._world
        endless: list[Coroutine[Any, Any, None]] = [
            _renew(world),
            self._at_intervals(_PassKind.SPLITTING, self._split_pass, self._split_now, self._split_delay),
            self._at_intervals(_PassKind.MERGING, self._merge_pass, self._merge_now, self._merge_delay),
            self._watch_triggers(),
        ]
        await together(endless)

    async def _split_pass(self) -> float:
        world = self._world
        described = await world.call(world.client.describe)
        world.settings = described.pipeline
        seen, started = dict(self._triggered), world.clock.monotonic()
        await self._splitter.run_pass()
        if any(self._merged.get(topic) != moment for topic, moment in seen.items()):
            self._split = seen
            self._merge_now.set()
        return self._due(world.settings.splitter_interval_ms, str, started)

    async def _merge_pass(self) -> float:
        split, started = dict(self._split), self._world.clock.monotonic()
        await self._merger.run_pass()
        self._merged.update(split)
        return self._due(self._world.settings.merger_interval_ms, TopicIdPartition, started)

    def _due(self, interval_ms: int, failing: type, started: float) -> float:
        """When the next pass is due: sooner if something that has failed is to be tried again. In ms."""
        retry = self._world.troubles.seconds_until_retry(failing, since=started)
        return interval_ms if retry is None else min(interval_ms, max(retry * _MS, _SOONEST_MS))

    async def _at_intervals(
        self, kind: _PassKind, work: Callable[[], Awaitable[float]], now: asyncio.Event, delay: float
    ) -> None:
        """Run passes until cancelled. `work` returns the ms until the next one; after a failure it is due sooner."""
        world = self._world
        while True:
            await world.clock.wait_set(now, within=delay)
            now.clear()
            try:
                delay = await work() / _MS
            except (BrokersUnavailable, RequestRefused) as error:
                delay = world.fail(kind, kind.value, str(error)).retry_at - world.clock.monotonic()
            else:
                world.troubles.over(kind)

    async def _watch_triggers(self) -> None:
        world = self._world
        while True:
            await world.clock.sleep(TRIGGER_POLL_SECONDS)
            try:
                answer = await world.call(world.client.list_triggers, ListTriggers(topics=world.topics))
            except (BrokersUnavailable, RequestRefused) as error:
                logger.info("nobody says whether a topic was triggered: %s", error)
                continue
            found = answer.triggered_at_ms
            news = {topic for topic, moment in found.items() if self._merged.get(topic) != moment}
            if any(self._triggered.get(topic) != found[topic] for topic in news):
                logger.info("triggered: %s", ", ".join(sorted(news)))
                self._split_now.set()
            self._triggered = {topic: found[topic] for topic in news}


async def _renew(world: RunWorld) -> None:
    """Keep what this run has claimed, and let brokers know how many things need an operator."""
    told = 0
    while True:
        claim_ms = world.settings.splitter_claim_duration_ms
        await world.clock.sleep(claim_ms / _MS / RENEWALS)
        failing = world.troubles.failing(world.settings.alert_after_failures)
        if not world.holds and not failing and not told:
            continue
        try:
            renewal = RenewClaims(claimant=world.claimant, claim_ms=claim_ms, failing=failing)
            await world.call(world.client.renew_claims, renewal)
            told = failing
            if world.merge_claimant:
                merging = RenewClaims(claimant=world.merge_claimant, claim_ms=claim_ms)
                await world.call(world.client.renew_claims, merging)
        except (BrokersUnavailable, RequestRefused) as error:
            logger.warning("claims are not renewed: %s", error)
