"""What keeps clients from appending to a replica: a seal, or no new transactions. Most replicas never have one."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields
from typing import Final

from strandline.errors import StrandlineError
from strandline.log import AppendOrigin, LogAppendInfo, UnifiedLog
from strandline.model import NO_OFFSET, NO_TIMESTAMP
from strandline.replication.admission import check_transaction_goes_on
from strandline.replication.append import NO_ACKS, Append, Appended
from strandline.replication.first_batches import FirstBatches, with_refused

_FIELDS: Final = tuple(field.name for field in fields(LogAppendInfo))


class HeldAppend:
    """An append that came while its replica was sealed for a moment, and goes on where the next ones will go."""

    __slots__ = ("_acks", "_done", "_is_early", "_origin", "_source", "info", "records")

    def __init__(self, append: Append) -> None:
        self.records = records = memoryview(bytearray(append.records))
        """A copy of what was to be appended."""
        self._acks, self._origin, self._done = append.acks, append.origin, append.done
        self.info = LogAppendInfo(
            first_offset=NO_OFFSET,
            last_offset=NO_OFFSET,
            log_append_time_ms=NO_TIMESTAMP,
            log_start_offset=NO_OFFSET,
            is_duplicate=False,
            size=len(records),
            max_timestamp=NO_TIMESTAMP,
        )
        self._source: LogAppendInfo | None = None
        self._is_early = False

    def go_on(self, append: Callable[[Append], Appended]) -> None:
        """Append it now."""
        try:
            appended = append(Append(self.records, acks=self._acks, origin=self._origin, done=self._finished))
        except StrandlineError as error:
            self._done(error)
            return
        self._source = appended.info
        if appended.is_done or self._is_early:
            self._finished(None)

    def _finished(self, error: StrandlineError | None) -> None:
        if error is None:
            if self._source is None:
                self._is_early = True  # its offsets are known when the call has returned
                return
            for name in _FIELDS:
                setattr(self.info, name, getattr(self._source, name))
        self._done(error)

    def refuse(self, error: StrandlineError) -> None:
        """It does not go on."""
        self._done(error)


class ClientGate:
    """Lets appends of clients through, holds them for a moment, or refuses them. Belongs to the event loop."""

    __slots__ = ("_held", "_log", "_no_transactions_until", "_seal", "first_batches")

    def __init__(self, log: UnifiedLog) -> None:
        self._log = log
        self._seal: StrandlineError | None = None
        self._held: list[HeldAppend] | None = None
        self._no_transactions_until = 0.0
        self.first_batches: FirstBatches | None = None
        """First batches of producers that the seal has refused."""

    @property
    def is_sealed(self) -> bool:
        """True while no append of a client reaches the log."""
        return self._seal is not None

    @property
    def refuses_new_transactions(self) -> bool:
        """True while a transaction cannot begin here. Open ones go on, and so does everything outside of one."""
        return self._log.env.clock.monotonic() < self._no_transactions_until

    def refuse_new_transactions(self, until: float) -> None:
        """Let none begin before this moment of the monotonic clock. No call is needed when that moment has come."""
        self._no_transactions_until = until

    def let_transactions_begin(self) -> None:
        """Let transactions begin again."""
        self._no_transactions_until = 0.0

    def seal(self, error: StrandlineError, *, is_brief: bool = False) -> None:
        """Let no append through until `unseal`, and refuse them with this error.

        `is_brief`: they are held instead, in their order, until `stop_holding`, `unseal` or `take_held`.
        """
        self._seal = error
        if not is_brief:
            self.stop_holding()
        elif self._held is None:
            self._held = []

    def unseal(self) -> list[HeldAppend]:
        """Let appends through again. Returns those that were held, for the caller to let them go on."""
        self._seal = None
        return self.take_held()

    def take_held(self) -> list[HeldAppend]:
        """The appends that are held, for the caller to let them go on elsewhere. No more are held."""
        held, self._held = self._held, None
        return held or []

    def stop_holding(self, error: StrandlineError | None = None) -> None:
        """Refuse what is held, and hold no more. With the error of the seal, unless there is another one."""
        for held in self.take_held():
            self.first_batches = with_refused(self.first_batches, self._log, held.records)
            refusal = error or self._seal
            assert refusal is not None, "only a sealed replica holds appends"
            held.refuse(copy(refusal))

    @property
    def is_open(self) -> bool:
        """True if it restricts nothing, and is not needed any more."""
        is_free = self._seal is None and self.first_batches is None
        return is_free and self._held is None and not self.refuses_new_transactions

    def check_first_batches(self, records: memoryview) -> None:
        """Raise OutOfOrderSequence if the batch has to wait for one that the seal has refused."""
        if self.first_batches is not None and not self.first_batches.check(records):
            self.first_batches = None

    def check_not_held(self, records: memoryview) -> None:
        """Raise the error of the seal, also if appends are held: for one that must not go on elsewhere as it is."""
        if self._seal is not None:
            raise self._refusal(self._seal, records)

    def _refusal(self, seal: StrandlineError, records: memoryview) -> StrandlineError:
        self.first_batches = with_refused(self.first_batches, self._log, records)
        return copy(seal)  # one that is raised again and again would keep the frames of every time alive

    def admit(self, append: Append) -> Appended | None:
        """The answer to an append that is held; None if it may go on.

        Raises the seal's error, TransactionAbortable, or OutOfOrderSequence.
        """
        if append.origin is not AppendOrigin.CLIENT:
            if self._seal is not None:  # not even a marker may come behind the last record then
                raise copy(self._seal)
            return None
        if self._seal is None:
            if self.refuses_new_transactions:
                check_transaction_goes_on(self._log, append.records)
            self.check_first_batches(append.records)
            return None
        if self._held is None or append.acks == NO_ACKS:
            raise self._refusal(self._seal, append.records)
        held = HeldAppend(append)
        self._held.append(held)
        return Appended(held.info, is_done=False, is_written=False, is_copied=True)
