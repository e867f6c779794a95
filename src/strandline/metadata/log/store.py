"""The metadata log and the controller's lease, as tables of a `SqlStore`."""

from __future__ import annotations

import asyncio
import uuid
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from strandline.metadata.delta import apply_records
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage
from strandline.metadata.log.record_json import decode_record, encode_record
from strandline.metadata.log.snapshot import decode_in_steps, encode_in_steps
from strandline.metadata.records import ControllerChangeRecord, MetadataRecord
from strandline.metadata.topic_map import indexed_topics
from strandline.model import uuid_from_text
from strandline.sql import SqlStore, Statements, StoreCorrupt, Transaction
from strandline.tasks import in_turns, next_turn

CHANNEL: Final = "strandline_metadata"
LEASE_CHANNEL: Final = "strandline_lease"
PAGE: Final = 1_000
_DECODED_PER_STEP: Final = 100
_TRIM_PAGE: Final = 5_000

_DECODING_FAILURES: Final = (ValueError, TypeError, KeyError, AttributeError, IndexError, zlib.error)

_sql = Statements("strandline.metadata.log")

# What is done in other tables of the database, in the transaction that writes records. It may be called again with
# another transaction. A StrandlineError that it raises refuses the records: then nothing is written.
WrittenTogether: TypeAlias = Callable[[Transaction], Awaitable[None]]


class Deposed(Exception):
    """A higher controller epoch has begun: this controller must not write."""


class _Rehearsed(Exception):
    """Ends a transaction that is not to be committed."""


class ImageIsBehind(Exception):
    """The log has records that the writer has not read; it has to read them and decide again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The lease of the active controller in the database. `remaining_ms` is None if it does not expire."""

    epoch: int
    node_id: int | None
    session_id: str | None
    next_offset: int
    remaining_ms: int | None

    @property
    def has_expired(self) -> bool:
        """True if its holder did not renew it in time."""
        return self.remaining_ms is not None and self.remaining_ms <= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A controller's right to write: its epoch, and the offset of the record that opened it."""

    node_id: int
    epoch: int
    first_offset: int


class LogPage(NamedTuple):
    """Some of the records of the log, and the offset at which it ended when they were read.

    A page may end inside the records of one append; the log ends after one.
    """

    records: Sequence[tuple[int, MetadataRecord]]
    end: int


class MetadataStore:
    """An append-only log with one writer at a time. Passes tests/contracts/test_metadata_store.py on both databases.

    - ordered: records become visible to readers in the order of their offsets, without gaps;
    - fenced: an append with an old controller epoch raises Deposed and writes nothing;
    - atomic: all records of one append, or none, and with them what is written together with them; a reader of pages
      has them all at the `end` that a page tells;
    - bounded: after `add_snapshot` a reader needs the newest snapshot and the records after it, no more.
    """

    def __init__(self, sql: SqlStore) -> None:
        self._store = sql

    @property
    def sql(self) -> SqlStore:
        """The store below."""
        return self._store

    @property
    def process_id(self) -> uuid.UUID:
        """The id of this process, as a lease names it."""
        return uuid_from_text(self._store.session_id)

    def listen_for_lease(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after a lease was released; returns a function that stops it. See SqlStore.listen."""
        return self._store.listen(LEASE_CHANNEL, wake)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after appends of any process; returns a function that stops it. See SqlStore.listen."""
        return self._store.listen(CHANNEL, wake)

    async def load(self) -> MetadataImage:
        """The newest image: the newest snapshot and all records after it."""
        image = await self.newest_snapshot() or EMPTY_IMAGE
        while page := await self.read(image.offset):
            image = apply_records(image, page).new
        return image

    async def newest_snapshot(self) -> MetadataImage | None:
        """The newest snapshot, or None if there is none yet."""
        async with self._store.transaction() as tx:
            row = await tx.fetch_one(_sql["newest_snapshot"])
        if row is None:
            return None
        try:
            text = await asyncio.to_thread(_text, row[1])
            return await in_turns(decode_in_steps(text))
        except _DECODING_FAILURES as error:
            raise _damaged("snapshot", row[0], error) from error

    async def newest_snapshot_offset(self) -> int:
        """The offset of the newest snapshot, or -1."""
        async with self._store.transaction() as tx:
            row = await tx.fetch_one(_sql["newest_snapshot_offset"])
        return -1 if row is None or row[0] is None else int(row[0])

    async def read(self, after: int, limit: int = PAGE) -> Sequence[tuple[int, MetadataRecord]]:
        """The next records after an offset. If the first one has another offset than the next, the log was trimmed."""
        return (await self.read_page(after, limit)).records

    async def read_page(self, after: int, limit: int = PAGE) -> LogPage:
        """As `read`, with the end of the log."""
        async with self._store.transaction() as tx:
            rows = await tx.fetch(_sql["read_records"], after, limit)
        records = []
        for number, (offset, kind, payload, _) in enumerate(rows, 1):
            if number % _DECODED_PER_STEP == 0:
                await next_turn()
            try:
                records.append((offset, decode_record(kind, payload)))
            except _DECODING_FAILURES as error:
                raise _damaged("record", offset, error) from error
        return LogPage(records, rows[0][3] if rows else after + 1)

    async def lease(self) -> Lease:
        """The lease, read without waiting for locks."""
        async with self._store.transaction() as tx:
            return await _read_lease(tx, "read_lease")

    async def take_lease(
        self, node_id: int, *, may_take: Callable[[Lease], bool], duration_ms: int | None
    ) -> Term | None:
        """Begin a new controller epoch if `may_take` accepts the current lease; None if it does not.

        Every broker asks once in a while, and only one that may take the lease locks it: a broker that is suspended
        with the lock holds up the controller.
        """
        if not may_take(await self.lease()):
            return None
        async with self._store.transaction() as tx:
            lease = await _read_lease(tx, "lock_lease")
            if not may_take(lease):
                return None
            epoch = lease.epoch + 1
            await tx.execute(_sql["take_lease"], epoch, node_id, self._store.session_id, duration_ms)
            record = ControllerChangeRecord(controller_id=node_id, epoch=epoch)
            await _append(tx, epoch, lease.next_offset, (record,))
            return Term(node_id=node_id, epoch=epoch, first_offset=lease.next_offset)

    async def renew_lease(self, term: Term, duration_ms: int) -> None:
        """Keep the lease for another `duration_ms`. Raises Deposed."""
        async with self._store.transaction() as tx:
            if not await tx.execute(_sql["renew_lease"], term.epoch, duration_ms):
                raise Deposed(f"Controller epoch {term.epoch} is over.")

    async def release_lease(self, term: Term) -> None:
        """Let another broker take the lease at once. Does nothing if one already has."""
        async with self._store.transaction() as tx:
            await tx.execute(_sql["release_lease"], term.epoch)
            tx.notify(LEASE_CHANNEL)

    async def append(
        self,
        term: Term,
        expected_offset: int,
        records: Sequence[MetadataRecord],
        together: WrittenTogether | None = None,
    ) -> None:
        """Append the records at `expected_offset`, and do what is to be `together` with them, in one transaction.

        Raises Deposed, ImageIsBehind, StoreCorrupt or what `together` raises, and wrote nothing.
        """
        async with self._store.transaction() as tx:
            lease = await _read_lease(tx, "lock_lease")
            if lease.epoch != term.epoch or lease.node_id != term.node_id:
                raise Deposed(f"Controller epoch {term.epoch} is over: epoch {lease.epoch} has begun.")
            _check_length(lease, expected_offset)
            if lease.next_offset != expected_offset:
                raise ImageIsBehind(f"The next metadata offset is {lease.next_offset}, not {expected_offset}.")
            if together is not None:
                await together(tx)
            if records:
                await _append(tx, term.epoch, expected_offset, records)

    async def rehearse(self, together: WrittenTogether) -> None:
        """Do what an append would do together with its records, and take it back. Raises what `together` raises."""
        try:
            async with self._store.transaction() as tx:
                await together(tx)
                raise _Rehearsed
        except _Rehearsed:
            return

    async def add_snapshot(self, image: MetadataImage) -> None:
        """Store the image, and delete the records and snapshots that the previous snapshot made superfluous.

        Takes no lock that appends need: the records below a snapshot do not change. Raises StoreCorrupt.
        """
        payload = await in_turns(encode_in_steps(image))
        records = len(image.topics) + len(image.brokers) + indexed_topics(image).partition_count
        async with self._store.transaction() as tx:
            _check_length(await _read_lease(tx, "read_lease"), image.offset + 1)
            await tx.execute(_sql["add_snapshot"], image.offset, image.controller_epoch, records, payload)
            previous = await tx.fetch_one(_sql["previous_snapshot"])
        if previous is None:
            return
        while True:
            async with self._store.transaction() as tx:
                trimmed = await tx.execute(_sql["trim_records"], previous[0], _TRIM_PAGE)
                if trimmed < _TRIM_PAGE:
                    await tx.execute(_sql["delete_snapshots"], previous[0])
                    return


def _check_length(lease: Lease, next_offset: int) -> None:
    """A writer whose image is ahead of the log must not write: its records or its snapshot would join two histories."""
    if lease.next_offset < next_offset:
        raise StoreCorrupt(
            f"The metadata log ends before offset {lease.next_offset}, but this broker has read it up to "
            f"{next_offset - 1}: the database has lost commits, in a failover without synchronous replication or by "
            "being restored. Restart the brokers to go on with what the database holds; until then metadata is not "
            "changed."
        )


def _text(payload: bytes) -> str:
    return zlib.decompress(payload).decode()


def _damaged(what: str, offset: int, error: Exception) -> StoreCorrupt:
    return StoreCorrupt(f"The metadata {what} at offset {offset} cannot be read: {type(error).__name__}: {error}.")


async def _read_lease(tx: Transaction, statement: str) -> Lease:
    row = await tx.fetch_one(_sql[statement])
    if row is None:  # the migration created it, and no statement of ours deletes it
        raise StoreCorrupt(
            "The table controller_lease of the metadata database is empty: the database is not the one that this "
            "cluster was using. Restore it, or let strandline.metadata.url lead to the right one."
        )
    epoch, node_id, session_id, next_offset, expires_at_ms, now_ms = row
    return Lease(
        epoch=epoch,
        node_id=node_id,
        session_id=session_id,
        next_offset=next_offset,
        remaining_ms=None if expires_at_ms is None else expires_at_ms - now_ms,
    )


async def _append(tx: Transaction, epoch: int, base_offset: int, records: Sequence[MetadataRecord]) -> None:
    rows = [(offset, epoch, *encode_record(record)) for offset, record in enumerate(records, base_offset)]
    await tx.execute_many(_sql["append_record"], rows)
    await tx.execute(_sql["set_next_offset"], base_offset + len(rows))
    tx.notify(CHANNEL)
