"""The transaction coordinator: finds the shard of a transactional id, and turns its callbacks into answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from strandline.clock import Clock
from strandline.config import TransactionSettings
from strandline.coordinators.fields import LONGEST_STRING
from strandline.coordinators.runtime import (
    CoordinatorLog,
    CoordinatorPartitionWriter,
    CoordinatorRuntime,
    InternalTopic,
)
from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.rules import Verified
from strandline.coordinators.transactions.shard import Decided, MarkerSender, TransactionShard
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import (
    ConcurrentTransactions,
    InvalidRequest,
    InvalidTransactionTimeout,
    StrandlineError,
    TransactionalIdNotFound,
)
from strandline.model import (
    NO_PRODUCER_ID,
    TRANSACTION_STATE_TOPIC,
    ProducerAndEpoch,
    ProducerId,
    TimestampMs,
    TopicPartition,
)
from strandline.patterns import compile_pattern
from strandline.records import Codec

R = TypeVar("R")


_WRITE_TIMEOUT_MS: Final = 5000
# Some milliseconds of work.
IDS_PER_TURN: Final = 2_000


def transaction_state_topic(settings: TransactionSettings) -> InternalTopic:
    """`__transaction_state`, as the settings describe it."""
    return InternalTopic(
        name=TRANSACTION_STATE_TOPIC,
        partitions=settings.transaction_state_log_num_partitions,
        codec=Codec.NONE,
        load_buffer_bytes=settings.transaction_state_log_load_buffer_size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """How long things may take, in milliseconds."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms: what a producer may ask for."""
    id_expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms: ids that no producer has used for so long are forgotten."""
    abort_interval_ms: int = 10_000
    """How often transactions that take too long are looked for."""
    expire_interval_ms: int = 3_600_000
    """How often ids to forget are looked for."""
    patience_ms: int = 100
    """add.partitions.to.txn.retry.backoff.max.ms: how long a request waits until a transaction has ended, instead of
    being told to try again."""

    @classmethod
    def of(cls, settings: TransactionSettings) -> TransactionLimits:
        return cls(
            max_timeout_ms=settings.transaction_max_timeout_ms,
            id_expiration_ms=settings.transactional_id_expiration_ms,
            abort_interval_ms=settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            expire_interval_ms=settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            patience_ms=settings.add_partitions_to_txn_retry_backoff_max_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFilter:
    """Which transactions are listed. Empty: all."""

    states: Collection[TransactionState] = ()
    producer_ids: Collection[ProducerId] = ()
    longer_than_ms: int = -1
    """Only those that have been open for longer; negative: all."""
    id_pattern: str = ""
    """A regular expression that the whole transactional id matches."""

    def compiled(self) -> Callable[[str], object] | None:
        """Whether an id matches the pattern; None if every id does. Raises InvalidRegularExpression."""
        if not self.id_pattern:
            return None
        found: Callable[[str], object] = compile_pattern(self.id_pattern, name="TransactionalIdPattern").fullmatch
        return found

    def matches(self, transaction: TransactionMetadata, now_ms: TimestampMs) -> bool:
        """All but the pattern."""
        if self.states and transaction.state not in self.states:
            return False
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.longer_than_ms < 0:
            return True
        return transaction.start_ms >= 0 and now_ms - transaction.start_ms > self.longer_than_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsStatus:
    """What a broker coordinates now."""

    by_state: Mapping[str, int] = field(default_factory=dict)
    """How many transactional ids, by the label of their state."""
    longest_open_s: float = 0.0
    """How long the oldest transaction has been open; 0 if none is."""
    unmarked: int = 0
    """Transactions that are decided, and have partitions without a marker."""


class TransactionCoordinator:
    """Every request about transactional ids, for those whose partition this broker leads.

    All methods raise StrandlineError. A cancelled call may or may not have taken effect. `runtime` owns the partitions
    and must be notified of changes of their leaders.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        markers: MarkerSender,
        new_producer_id: Callable[[], Awaitable[ProducerId]],
        *,
        clock: Clock,
        limits: TransactionLimits,
    ) -> None:
        self._markers, self._new_producer_id, self._clock, self._limits = markers, new_producer_id, clock, limits
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            "transaction", log, self._make_shard, clock=clock, write_timeout_ms=_WRITE_TIMEOUT_MS
        )
        self.runtime.sweep_every(limits.abort_interval_ms, TransactionShard.abort_timed_out)
        self.runtime.sweep_every(limits.expire_interval_ms, lambda shard: shard.expire(limits.id_expiration_ms))

    def _make_shard(self, writer: CoordinatorPartitionWriter) -> TransactionShard:
        return TransactionShard(
            writer, self._markers, self._clock, self.runtime.timers, epoch=lambda: writer.leader_epoch
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[TransactionCoordinator]:
        """Serve inside the block. Leaving it unloads every partition: waiting requests get NotCoordinator."""
        async with self.runtime.running():
            yield self

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` whose leader coordinates the id."""
        return self.runtime.partition_for(transactional_id)

    # Producers

    async def init_producer_id(
        self, transactional_id: str, *, timeout_ms: int, expected: ProducerAndEpoch | None = None
    ) -> ProducerAndEpoch:
        """A producer begins to use an id, or goes on after an error (`expected`)."""
        most_ms = self._limits.max_timeout_ms
        if not 0 < timeout_ms <= most_ms:
            raise InvalidTransactionTimeout(
                f"The timeout of a transaction has to be between 1 and {most_ms} ms (transaction.max.timeout.ms), not "
                f"{timeout_ms}."
            )

        def ask(answer: Decided, new_producer_id: ProducerId) -> None:
            self._shard(transactional_id).init_producer_id(
                transactional_id, answer, expected=expected, timeout_ms=timeout_ms, new_producer_id=new_producer_id
            )

        done = await self._decided(transactional_id, ask)
        return ProducerAndEpoch(done.producer_id, done.producer_epoch)

    async def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        client_version: int,
    ) -> None:
        """The transaction has, or is about to have, records in these partitions."""

        async def ask() -> TransactionMetadata | StrandlineError:
            shard = self._shard(transactional_id)
            return await self.runtime.wait_written(
                lambda answer: shard.add_partitions(
                    transactional_id, producer, partitions, answer, client_version=client_version
                )
            )

        result = await self._patiently(transactional_id, ask)
        if isinstance(result, StrandlineError):
            raise result

    async def verify_partitions(
        self, transactional_id: str, producer: ProducerAndEpoch, partitions: Collection[TopicPartition]
    ) -> Verified:
        """Whether each is part of the open transaction."""

        async def ask() -> Verified | StrandlineError:
            try:
                return self._shard(transactional_id).verify_partitions(transactional_id, producer, partitions)
            except StrandlineError as error:
                return error

        result = await self._patiently(transactional_id, ask)
        if isinstance(result, StrandlineError):
            raise result
        return result

    async def end(
        self, transactional_id: str, producer: ProducerAndEpoch, *, is_commit: bool, client_version: int
    ) -> ProducerAndEpoch:
        """Commit or abort. Returns the producer's id and epoch from now on, when the end is decided for good."""

        def ask(answer: Decided, new_producer_id: ProducerId) -> None:
            self._shard(transactional_id).end(
                transactional_id,
                producer,
                answer,
                is_commit=is_commit,
                client_version=client_version,
                new_producer_id=new_producer_id,
            )

        done = await self._decided(transactional_id, ask)
        if done.next_producer_id != NO_PRODUCER_ID:
            return ProducerAndEpoch(done.next_producer_id, 0)
        return ProducerAndEpoch(done.producer_id, done.producer_epoch)

    async def _decided(self, transactional_id: str, ask: Callable[[Decided, ProducerId], None]) -> TransactionMetadata:
        """Ask, and ask again with a new producer id where one is needed."""
        new_producer_id: ProducerId = NO_PRODUCER_ID
        while True:
            asking: Callable[[Decided], None] = partial(_ask, ask, new_producer_id)
            result = await self._patiently(transactional_id, partial(self.runtime.wait_written, asking))
            match result:
                case TransactionMetadata():
                    return result
                case StrandlineError():
                    raise result
            new_producer_id = await self._new_producer_id()

    async def _patiently(self, transactional_id: str, ask: Callable[[], Awaitable[R]]) -> R:
        """Ask again as soon as the state has changed, while something else is under way; but not for long.

        A client that is told to try again waits much longer than the end of a transaction takes.
        """
        deadline = self._clock.monotonic() + self._limits.patience_ms / 1000
        while True:
            # Taken first: the state may have changed by the time the answer is here.
            changed = self._shard(transactional_id).next_change(transactional_id)
            result = await ask()
            left = deadline - self._clock.monotonic()
            if not isinstance(result, ConcurrentTransactions) or left <= 0:
                return result
            await self._clock.wait_set(changed, within=left)

    # Operators

    def describe(self, transactional_id: str) -> TransactionMetadata:
        """One transactional id. Raises TransactionalIdNotFound."""
        found = self._shard(transactional_id).transactions.get(transactional_id)
        if found is None or found.state is TransactionState.DEAD:
            raise TransactionalIdNotFound(f"There is no transactional id {transactional_id!r}.")
        return found

    async def transactions(self, wanted: TransactionFilter) -> list[TransactionMetadata]:
        """All that this broker coordinates. Raises CoordinatorLoadInProgress, InvalidRegularExpression.

        In short turns: what begins or ends meanwhile is listed as one turn sees it.
        """
        self.runtime.check_all_loaded()
        now_ms, is_meant = self._clock.now_ms(), wanted.compiled()
        found: list[TransactionMetadata] = []
        async for some in self.runtime.in_turns(lambda shard: shard.transactions, IDS_PER_TURN):
            found += [
                transaction
                for transaction in some
                if wanted.matches(transaction, now_ms) and (is_meant is None or is_meant(transaction.transactional_id))
            ]
        return found

    def status(self) -> TransactionsStatus:
        """What this broker coordinates now."""
        by_state: Counter[str] = Counter()
        oldest_ms = now_ms = self._clock.now_ms()
        for context in self.runtime.contexts:
            known = context.shard.transactions
            by_state.update({state.label: count for state, count in known.by_state.items() if count})
            if (start_ms := known.oldest_start_ms) is not None:
                oldest_ms = min(oldest_ms, start_ms)
        return TransactionsStatus(
            by_state=by_state, longest_open_s=(now_ms - oldest_ms) / 1000, unmarked=self._markers.outstanding
        )

    def _shard(self, transactional_id: str) -> TransactionShard:
        if not transactional_id:
            raise InvalidRequest("A transactional id may not be empty.")
        if len(transactional_id.encode()) > LONGEST_STRING:
            raise InvalidRequest(f"A transactional id has at most {LONGEST_STRING} bytes.")
        return self.runtime.shard_for(transactional_id)


def _ask(ask: Callable[[Decided, ProducerId], None], new_producer_id: ProducerId, answer: Decided) -> None:
    ask(answer, new_producer_id)
