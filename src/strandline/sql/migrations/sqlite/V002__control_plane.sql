-- The batch coordinator of diskless topics. Creates tables and their indexes only: locks nothing that exists.
--
-- Rows refer to each other by number without foreign keys: checking them would double the cost of a commit, and the
-- rows of a deleted log outlive it for a while. The transactions of strandline.controlplane keep them together. Numbers
-- are never given twice (AUTOINCREMENT): readers remember them. A topic id is Kafka's text form of it.

-- One partition. Who commits to it, or moves its start, locks its row; several rows always in the order of log_id.
CREATE TABLE inkless_log (
    log_id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id TEXT NOT NULL,
    partition INTEGER NOT NULL CHECK (partition >= 0),
    topic_name TEXT NOT NULL,
    log_start_offset INTEGER NOT NULL DEFAULT 0,
    high_watermark INTEGER NOT NULL DEFAULT 0,
    tiered_log_start_offset INTEGER NOT NULL DEFAULT -1,
    tiered_high_offset INTEGER NOT NULL DEFAULT -1,
    diskless_start_offset INTEGER NOT NULL DEFAULT 0,
    diskless_log_start_offset INTEGER NOT NULL DEFAULT 0,
    diskless_log_start_epoch INTEGER NOT NULL DEFAULT 0,
    migration_state TEXT NOT NULL DEFAULT 'DISKLESS_ONLY',
    byte_size INTEGER NOT NULL DEFAULT 0,
    max_timestamp INTEGER NOT NULL DEFAULT -1,
    is_deleted INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic_id, partition)
);

CREATE INDEX inkless_log_migration_state ON inkless_log (migration_state);

-- One object. A file that no batch refers to is "deleting" until its object is gone, then "deleted" for a day: a commit
-- that comes too late finds out. `answers` is what its commit was told, for whoever asks again.
CREATE TABLE inkless_file (
    file_id INTEGER PRIMARY KEY AUTOINCREMENT,
    object_key TEXT NOT NULL UNIQUE,
    format INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL CHECK (state IN ('uploaded', 'deleting', 'deleted')),
    uploader_broker_id INTEGER NOT NULL,
    size INTEGER NOT NULL,
    committed_at_ms INTEGER NOT NULL,
    marked_for_deletion_at_ms INTEGER,
    answers TEXT
);

CREATE INDEX inkless_file_to_delete ON inkless_file (state, marked_for_deletion_at_ms, file_id)
WHERE state <> 'uploaded';

-- One or more batches that lie side by side in one file. `running_max_timestamp` never falls along a log, so that a
-- time can be searched for in the order of offsets.
CREATE TABLE inkless_batch (
    log_id INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    file_id INTEGER NOT NULL,
    byte_offset INTEGER NOT NULL,
    byte_size INTEGER NOT NULL,
    timestamp_type INTEGER NOT NULL,
    log_append_timestamp INTEGER NOT NULL,
    max_timestamp INTEGER NOT NULL,
    running_max_timestamp INTEGER NOT NULL,
    leader_epoch INTEGER NOT NULL,
    tiering_state TEXT NOT NULL DEFAULT 'DISKLESS',
    PRIMARY KEY (log_id, last_offset)
) WITHOUT ROWID;

CREATE INDEX inkless_batch_file ON inkless_batch (file_id);

-- What a partition remembers of a producer. `batches` holds the newest ones: last sequence, last offset, offset delta and
-- timestamp of each, 64 bits in hexadecimal.
CREATE TABLE inkless_producer_state (
    log_id INTEGER NOT NULL,
    producer_id INTEGER NOT NULL,
    producer_epoch INTEGER NOT NULL,
    last_timestamp INTEGER NOT NULL,
    committed_at_ms INTEGER NOT NULL,
    batches TEXT NOT NULL,
    PRIMARY KEY (log_id, producer_id)
) WITHOUT ROWID;

-- Who is splitting which file for tiering.
CREATE TABLE inkless_wal_file_claim (
    object_key TEXT PRIMARY KEY,
    claimed_by_broker INTEGER NOT NULL,
    claimed_at_ms INTEGER NOT NULL,
    claim_expires_at_ms INTEGER NOT NULL,
    split_completed INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX inkless_wal_file_claim_expiry ON inkless_wal_file_claim (claim_expires_at_ms);

-- Pieces of files, each of one partition, that wait to be merged into a segment.
CREATE TABLE inkless_split_batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id TEXT NOT NULL,
    partition INTEGER NOT NULL,
    object_key TEXT NOT NULL,
    base_offset INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_by_broker INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL
);

CREATE INDEX inkless_split_batch_partition ON inkless_split_batch (topic_id, partition, base_offset);
