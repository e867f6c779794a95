"""Keeps this broker's image up to date and notifies the other components of what changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from strandline.clock import Clock
from strandline.metadata.comparison import compared_in_steps, delta_between
from strandline.metadata.delta import ImageBuilder, MetadataDelta, apply_records
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage
from strandline.metadata.log.store import PAGE, LogPage, MetadataStore
from strandline.metadata.records import MetadataRecord
from strandline.sql import SqlError, StoreCorrupt
from strandline.tasks import Setbacks, in_turns

logger = logging.getLogger(__name__)

Subscriber: TypeAlias = Callable[[MetadataDelta, MetadataImage], None]

POLL_SECONDS: Final = 2.0  # how late a change can be seen when its notification is lost
IDLE_POLL_SECONDS: Final = 60.0  # no other process writes to an exclusive store


class MetadataLoader:
    """Holds the newest `image` this broker has seen.

    Subscribers are called on the event loop, one delta after the other, without gaps; a new subscriber first gets the
    whole image as a delta from nothing. Records that were appended together are in one delta. Records of this broker's
    own controller are published before the call that wrote them returns; those of other brokers arrive by notification,
    or by polling if the notification was lost.
    """

    def __init__(self, store: MetadataStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._image = EMPTY_IMAGE
        self._subscribers: list[Subscriber] = []
        self._catching_up = asyncio.Lock()
        self._wake = asyncio.Event()
        self._stopping = False

    @property
    def image(self) -> MetadataImage:
        """The newest image."""
        return self._image

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with the image so far, then with every change. Returns a function that stops it."""
        self._subscribers.append(subscriber)
        if self._image is not EMPTY_IMAGE:
            subscriber(delta_between(EMPTY_IMAGE, self._image), self._image)

        def remove() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return remove

    async def load(self) -> MetadataImage:
        """Read the whole log. Called once, before `running`."""
        await self.catch_up()
        return self._image

    async def catch_up(self) -> None:
        """Read and publish all records that are committed now."""
        async with self._catching_up:
            if self._image is EMPTY_IMAGE:
                await self._jump_to_snapshot()
            while True:
                image = self._image
                page = await self._store.read_page(image.offset)
                if page.records:
                    await self._publish_to_the_end(image, page)
                if not page.records or self._image.offset + 1 >= page.end:
                    return

    async def _publish_to_the_end(self, image: MetadataImage, page: LogPage) -> None:
        """Publish what the log held when this page of it was read, as one change: the log ends after an append.

        An image of each page would show topics without some of their partitions or settings. Publishes nothing if our
        own controller has published some of it meanwhile.
        """
        builder, offset, records = ImageBuilder(image), image.offset, page.records
        while self._image is image:
            if not records or records[0][0] != offset + 1:
                await self._jump_over(offset, records[0][0] if records else page.end)  # they were trimmed meanwhile
                return
            for offset, record in records:
                builder.apply(offset, record)
            if offset + 1 >= page.end:
                delta = await in_turns(builder.build_in_steps())
                if self._image is image:
                    self._publish(delta)
                return
            records = await self._store.read(offset, min(PAGE, page.end - offset - 1))

    async def _jump_over(self, offset: int, first_offset: int) -> None:
        await self._jump_to_snapshot()
        if self._image.offset <= offset:
            raise StoreCorrupt(
                f"The metadata log has no records between the offsets {offset} and {first_offset}, and no snapshot "
                "that replaces them. If the database was restored, restore it to a state that is complete."
            )

    async def _jump_to_snapshot(self) -> None:
        snapshot = await self._store.newest_snapshot()
        while snapshot is not None and snapshot.offset > self._image.offset:
            delta = await in_turns(compared_in_steps(self._image, snapshot))
            if delta.old is self._image:  # our own controller may have published records meanwhile
                self._publish(delta)

    def committed(self, base_offset: int, records: Sequence[MetadataRecord]) -> None:
        """Publish records that this broker's controller has just committed."""
        fresh = [entry for entry in enumerate(records, base_offset) if entry[0] > self._image.offset]
        if fresh and fresh[0][0] == self._image.offset + 1:
            self._publish(apply_records(self._image, fresh))
        elif fresh:
            self._wake.set()

    def _publish(self, delta: MetadataDelta) -> None:
        """All subscribers see the delta, even if one fails; the failures are raised together afterwards."""
        self._image = delta.new
        failures: list[Exception] = []
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(delta, delta.new)
            except Exception as error:  # noqa: BLE001 - collected, and raised below
                failures.append(error)
        if failures:
            raise ExceptionGroup(f"Subscribers failed at metadata offset {delta.new.offset}.", failures)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[MetadataLoader]:
        """Follow the log while the block lasts."""
        stop_listening = self._store.listen(self._wake.set)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow(), name="metadata-loader")
                yield self
                self._stopping = True
                self._wake.set()
        finally:
            stop_listening()

    async def _follow(self) -> None:
        poll = IDLE_POLL_SECONDS if self._store.sql.is_exclusive else POLL_SECONDS
        setbacks = Setbacks("reading the metadata log", logger)
        while True:
            await self._clock.wait_set(self._wake, within=poll)
            self._wake.clear()
            if self._stopping:
                return
            try:
                await self.catch_up()
            except SqlError as error:
                setbacks.met(error)
            else:
                setbacks.over()
