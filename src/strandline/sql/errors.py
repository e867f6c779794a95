"""Errors of the database.

Drivers raise dozens of classes; callers only need to know two things. These are not Kafka errors: the layer that
answers clients translates them.

- A request goes by `retriable`: whether the same request may succeed in a moment, or an operator has to act.
- Background work of a running broker goes on after any SqlError, whatever it is, and tries again. Databases are failed
  over, restored and granted rights while brokers run; a state of the database never ends a broker that serves clients.
"""

from __future__ import annotations

from typing import ClassVar


class SqlError(Exception):
    """The database refused a statement. Base of all errors of this package; an immediate retry does not help."""

    retriable: ClassVar[bool] = False


class StoreUnavailable(SqlError):
    """The database cannot be reached, takes no writes, is starting, did not answer in time, or has failed by itself.

    It will pass. The transaction may have committed.
    """

    retriable = True


class MigrationBlocked(StoreUnavailable):
    """Another transaction uses a table that a schema migration changes. Nothing was changed."""


class TransactionConflict(SqlError):
    """The database aborted this transaction for another one (serialization, deadlock). It has not committed."""

    retriable = True


class IntegrityViolation(SqlError):
    """A row breaks a unique, foreign-key or check rule."""


class StoreInUse(SqlError):
    """Another process has this store open, or holds this name in it."""


class StoreMisconfigured(SqlError):
    """The address, the credentials or the rights do not allow the use of the database."""


class ClockDiffers(SqlError):
    """The clock of this process and that of the database are too far apart."""


class SchemaMismatch(SqlError):
    """The schema in the database is not one that this version of the code can bring up to date."""


class StoreCorrupt(SqlError):
    """The database is damaged, is not a database, or does not hold what was written to it."""
