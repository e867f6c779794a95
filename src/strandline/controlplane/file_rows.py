"""Rows of files, by the keys of their objects: which objects are known, and which are refused from now on."""

from __future__ import annotations

from collections.abc import Collection

from strandline.controlplane.database import Database
from strandline.sql import Transaction


async def find_files(db: Database, tx: Transaction, object_keys: Collection[str]) -> dict[str, bool]:
    """Those of the files that have a row, and whether batches refer to them."""
    rows = await db.fetch(tx, "known_files", [(key,) for key in object_keys], 1)
    return {key: bool(is_used) for key, is_used in rows}


async def take_orphans(
    db: Database, tx: Transaction, object_keys: Collection[str], *, broker_id: int, now_ms: int | None
) -> list[str]:
    """Mark objects without a row for deletion, so that they are refused from now on; returns their keys."""
    keys = db.dialect.bulk([(key,) for key in object_keys], 1)
    return [row[0] for row in await tx.fetch(db.sql["take_orphans"], now_ms, broker_id, *keys)]
