"""The transactional store: SQLite for one process, PostgreSQL for a cluster, behind one small interface.

Here: transactions, named statements, the two dialects, schema migrations, change notifications, session locks and
the translation of drivers' errors. Not here: any rule about what the rows mean.
"""

from strandline.sql.clock_watch import ClockWatch
from strandline.sql.dialect import Dialect
from strandline.sql.errors import (
    IntegrityViolation,
    SchemaMismatch,
    SqlError,
    StoreCorrupt,
    StoreInUse,
    StoreMisconfigured,
    StoreUnavailable,
    TransactionConflict,
)
from strandline.sql.opening import open_store
from strandline.sql.statements import Statements
from strandline.sql.store import Holders, Row, SqlStore, Transaction, Work
from strandline.sql.waiting import WaitGivenUp, open_when_there
from strandline.sql.watched import WatchedStore

__all__ = [
    "ClockWatch",
    "Dialect",
    "Holders",
    "IntegrityViolation",
    "Row",
    "SchemaMismatch",
    "SqlError",
    "SqlStore",
    "Statements",
    "StoreCorrupt",
    "StoreInUse",
    "StoreMisconfigured",
    "StoreUnavailable",
    "Transaction",
    "TransactionConflict",
    "WaitGivenUp",
    "WatchedStore",
    "Work",
    "open_store",
    "open_when_there",
]
