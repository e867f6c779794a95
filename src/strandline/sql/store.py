"""The interface of the transactional store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from strandline.sql.dialect import Dialect

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
OnNotification: TypeAlias = Callable[[], None]


class Holders(NamedTuple):
    """Which sessions hold some names. A session has a number of its own while it lasts."""

    view: int
    sessions: Mapping[str, int]


class Transaction(Protocol):
    """One open transaction. Statements use $1, $2, … for arguments, and the dialect's {words} (see `dialect`)."""

    async def execute(self, statement: str, *args: object) -> int:
        """Run one statement; the number of rows it changed."""

    async def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run one statement once per row, in order, in one round trip."""

    async def fetch(self, statement: str, *args: object) -> list[Row]:
        """All rows of a query."""

    async def fetch_one(self, statement: str, *args: object) -> Row | None:
        """The first row of a query."""

    async def limit_silence(self, seconds: float) -> None:
        """From now on, end this transaction if its process says nothing for so long, suspended for instance.

        To be called before locking what others wait for. Rolled back then, it fails with StoreUnavailable.
        """

    def notify(self, channel: str) -> None:
        """Wake the listeners of `channel`, in every process, if and when this transaction commits."""


# The body of a transaction. It awaits only the methods of the transaction; it may run in a thread.
Work: TypeAlias = Callable[[Transaction], Coroutine[Any, Any, T]]


class SqlStore(Protocol):
    """A SQLite file or a PostgreSQL database. Every implementation passes tests/contracts/test_sql_store.py.

    - atomic: leaving `transaction()` normally commits everything, leaving it by an exception nothing;
    - durable: a committed transaction survives a crash of the process and of the machine;
    - isolated: transactions that lock the same row with {for_update}, or that write it, happen one after the other;
    - bounded: a transaction that takes longer than its deadline raises StoreUnavailable;
    - cancelled: rolled back, unless the commit had begun; then it may have committed.

    All errors are SqlErrors; drivers' exceptions do not leave this package.
    """

    @property
    def is_exclusive(self) -> bool:
        """True if no other process can have this store open: every earlier writer is gone."""

    @property
    def session_id(self) -> str:
        """A random id, new each time that the store is opened."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of this database."""

    def transaction(self, *, within: float | None = None) -> AbstractAsyncContextManager[Transaction]:
        """A read-write transaction of at most `within` seconds (default: the store's deadline)."""

    async def transact(self, work: Work[T], *, within: float | None = None) -> T:
        """Do `work` in one read-write transaction, and repeat it if the database aborts it in favour of another one.

        On SQLite all of it is one call to the store's thread, where `transaction` makes one for each statement.
        Cancelled: it may have committed.
        """

    async def read(self, work: Work[T], *, within: float | None = None) -> T:
        """Do `work`, which only reads and locks nothing. Each statement sees what is committed when it begins.

        On SQLite it neither waits for writers nor delays them.
        """

    def listen(self, channel: str, wake: OnNotification) -> Callable[[], None]:
        """Call `wake` on the event loop after commits that notified `channel`; returns a function that stops it.

        Notifications are hints: they may be merged, may come without a change (after a lost connection) and may be
        lost, so listeners also poll.
        """

    def hold(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold `name` until the block ends or this process dies. Raises StoreInUse if another holder has it."""

    async def holders(self, names: Sequence[str]) -> Holders:
        """Which sessions hold these names now, in one statement; names that are free are missing.

        A holder that lost its connection may be about to take its names again, and after a restart of the database
        that is true of all of them. `view` tells it apart: it grows each time that the looking session was renewed.
        """

    def apart(self) -> SqlStore:
        """This store for other callers: however many of them wait, they take no connection from those of this one.

        On SQLite it is the store itself. Open as long as this one.
        """

    async def close(self) -> None:
        """Release all resources. Open transactions are rolled back; closing twice is fine."""
