"""Errors of the database.

Drivers raise dozens of classes; callers only need to know whether to retry. These are not Kafka errors: the layer that
answers clients translates them.
"""

from __future__ import annotations

from typing import ClassVar


class SqlError(Exception):
    """The database refused a statement. Base of all errors of this package; a retry does not help."""

    retriable: ClassVar[bool] = False


class StoreUnavailable(SqlError):
    """The database cannot be reached, is starting or did not answer in time. The transaction may have committed."""

    retriable = True


class TransactionConflict(SqlError):
    """The database aborted this transaction for another one (serialization, deadlock). It has not committed."""

    retriable = True


class IntegrityViolation(SqlError):
    """A row breaks a unique, foreign-key or check rule."""


class StoreInUse(SqlError):
    """Another process has this store open, or holds this name in it."""


class StoreMisconfigured(SqlError):
    """The address, the credentials or the rights do not allow the use of the database."""


class SchemaMismatch(SqlError):
    """The schema in the database is not one that this version of the code can bring up to date."""


class StoreCorrupt(SqlError):
    """The database file is damaged or is not a database."""
