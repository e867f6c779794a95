-- The conversion of diskless batches into tiered segments: locks nothing that is in use. Replaces two tables that no
-- version has ever used, and creates others.

DROP TABLE inkless_wal_file_claim;
DROP TABLE inkless_split_batch;

-- Who is splitting which WAL object. A claim that has expired is anybody's. `split_completed`: no batch of the object is
-- left to split, so that nobody looks at it again. The row goes with the object.
CREATE TABLE inkless_wal_file_claim (
    object_key TEXT PRIMARY KEY,
    claimed_by TEXT NOT NULL,
    claimed_at_ms INTEGER NOT NULL,
    claim_expires_at_ms INTEGER NOT NULL,
    split_completed INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX inkless_wal_file_claim_claimant ON inkless_wal_file_claim (claimed_by) WHERE NOT split_completed;

-- Split files: the batches of one partition out of one WAL object, with their final bytes, that wait to be merged into a
-- segment. Their rows of inkless_batch are SPLIT. `file_id` is the object's own row in inkless_file, whose format is -1.
-- `leader_epochs`: pairs of an epoch and its first offset, JSON. `committed_at_ms`: when the newest batch was committed.
CREATE TABLE inkless_split_batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id TEXT NOT NULL,
    partition INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    object_key TEXT NOT NULL,
    file_id INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    batch_count INTEGER NOT NULL,
    max_timestamp INTEGER NOT NULL,
    leader_epochs TEXT NOT NULL,
    committed_at_ms INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    UNIQUE (topic_id, partition, base_offset)
);

-- Segments on their way to remote storage. A row goes when the segment is part of the log, or its bytes are deleted.
-- `custom_metadata`: what the storage returned for its bytes, in hexadecimal, once they are there.
CREATE TABLE inkless_tiering_segment (
    segment_id TEXT PRIMARY KEY,
    topic_id TEXT NOT NULL,
    partition INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    claimed_by TEXT NOT NULL,
    leader_epoch INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('UPLOADING', 'FINISHING', 'ABORTING')),
    created_at_ms INTEGER NOT NULL,
    claim_expires_at_ms INTEGER NOT NULL,
    custom_metadata TEXT
);

CREATE INDEX inkless_tiering_segment_log ON inkless_tiering_segment (topic_id, partition, base_offset);
CREATE UNIQUE INDEX inkless_tiering_segment_base ON inkless_tiering_segment (topic_id, partition, base_offset)
WHERE state <> 'ABORTING';

-- What operators have asked for a topic.
CREATE TABLE inkless_tiering_topic (
    topic_id TEXT PRIMARY KEY,
    is_paused INTEGER NOT NULL DEFAULT 0,
    triggered_at_ms INTEGER
);
