"""An append as a value: what is appended to a partition, how it is answered, and what it has led to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from strandline.errors import StrandlineError
from strandline.log import AppendOrigin, LogAppendInfo
from strandline.model import NO_TIMESTAMP, TimestampMs
from strandline.records import NOT_VERIFIED, TransactionVerification

# Called on the event loop when an append is as durable as its acks ask for, or with the error that prevented it.
Done: TypeAlias = Callable[[StrandlineError | None], None]

NO_ACKS: Final = 0
ACKS_ALL: Final = -1


class Append:
    """Batches on their way into a partition. Never changed, and not kept longer than the append takes."""

    # Not a dataclass: a compiled one is made by interpreted code, and this one is made for each batch.
    __slots__ = (
        "acks",
        "done",
        "is_borrowed",
        "origin",
        "records",
        "transaction_start_ms",
        "transaction_version",
        "verification",
        "written",
    )

    def __init__(
        self,
        records: memoryview,
        *,
        acks: int,
        origin: AppendOrigin,
        done: Done,
        written: Callable[[], None] | None = None,
        is_borrowed: bool = False,
        verification: TransactionVerification = NOT_VERIFIED,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> None:
        self.records: Final = records
        """Offsets are written into it."""
        self.acks: Final = acks
        self.origin: Final = origin
        self.done: Final = done
        """Called later, unless the answer says `is_done`."""
        self.written: Final = written
        """Called before `done`, if the records were written later and then have to wait for other replicas."""
        self.is_borrowed: Final = is_borrowed
        """The buffer is its owner's again when the call returns: it is copied if it has to outlive it."""
        self.verification: Final = verification
        """What the coordinator of a transactional batch has said of it."""
        self.transaction_version: Final = transaction_version
        """Of the client whose transaction a marker ends: its epochs are judged by it."""
        self.transaction_start_ms: Final = transaction_start_ms
        """Tells the transaction that a marker ends from others of the same epoch; see `PartitionAppends`."""

    def verified(self, verification: TransactionVerification) -> Append:
        """The same append of a client, of which its coordinator has said this."""
        return Append(
            self.records,
            acks=self.acks,
            origin=self.origin,
            done=self.done,
            written=self.written,
            is_borrowed=self.is_borrowed,
            verification=verification,
        )


class Appended(NamedTuple):
    """The result of an append. If not `is_done`, its `done` will be called.

    If not `is_written`, the records are still needed, until `done` or `written` is called; if `is_copied`, they are
    not needed, but a copy of them takes memory until then.
    """

    info: LogAppendInfo
    is_done: bool
    is_written: bool = True
    is_copied: bool = False
