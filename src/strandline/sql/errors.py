"""What can go wrong in a database, in our own words.

Drivers raise dozens of classes; callers only ask one thing: may I try again? These are not Kafka errors. The layer
that talks to clients gives them a Kafka meaning.
"""

from __future__ import annotations

from typing import ClassVar


class SqlError(Exception):
    """The database refused a statement. Base of all errors of this package; trying again does not help."""

    retriable: ClassVar[bool] = False


class StoreUnavailable(SqlError):
    """The database cannot be reached, is starting or did not answer in time. The transaction may have committed."""

    retriable = True


class TransactionConflict(SqlError):
    """The database chose this transaction to give way (serialization, deadlock). It has not committed."""

    retriable = True


class IntegrityViolation(SqlError):
    """A row breaks a unique, foreign-key or check rule."""


class StoreInUse(SqlError):
    """Another process has this store, or holds this name in it."""


class StoreMisconfigured(SqlError):
    """The address, the credentials or the rights do not allow to use the database."""


class SchemaMismatch(SqlError):
    """The schema in the database is not one that this version of the code can bring up to date."""


class StoreCorrupt(SqlError):
    """The database file is damaged or is no database."""
