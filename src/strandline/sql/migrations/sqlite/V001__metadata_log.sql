-- The metadata log, its snapshots and the controller's lease. Creates tables only: locks nothing that exists.

CREATE TABLE metadata_records (
    "offset" INTEGER PRIMARY KEY,
    controller_epoch INTEGER NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL
);

CREATE TABLE metadata_snapshots (
    "offset" INTEGER PRIMARY KEY,
    controller_epoch INTEGER NOT NULL,
    record_count INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    payload BLOB NOT NULL
);

-- One row. Whoever appends to the log locks it, so that offsets become visible in order and without gaps.
CREATE TABLE controller_lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    node_id INTEGER,
    session_id TEXT,
    expires_at_ms INTEGER,
    next_offset INTEGER NOT NULL
);

INSERT INTO controller_lease (id, epoch, next_offset) VALUES (1, 0, 0);
