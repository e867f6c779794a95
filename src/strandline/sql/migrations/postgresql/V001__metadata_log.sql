-- The metadata log, its snapshots and the controller's lease. Creates tables only: locks nothing that exists.

CREATE TABLE metadata_records (
    "offset" BIGINT PRIMARY KEY,
    controller_epoch BIGINT NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL
);

CREATE TABLE metadata_snapshots (
    "offset" BIGINT PRIMARY KEY,
    controller_epoch BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    payload BYTEA NOT NULL
);

-- One row. Whoever appends to the log locks it, so that offsets become visible in order and without gaps.
CREATE TABLE controller_lease (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL,
    node_id BIGINT,
    session_id TEXT,
    expires_at_ms BIGINT,
    next_offset BIGINT NOT NULL
);

INSERT INTO controller_lease (id, epoch, next_offset) VALUES (1, 0, 0);
