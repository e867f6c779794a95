-- Transactions on diskless logs. Needs no short locks: a SQLite database belongs to one process, which is starting.

-- Aborted transactions: from the first offset of a producer's transaction to its marker. `last_stable_offset` is that of
-- the log right behind the marker. A row goes with the batches of its marker.
CREATE TABLE inkless_aborted_txn (
    log_id INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    first_offset INTEGER NOT NULL,
    producer_id INTEGER NOT NULL,
    last_stable_offset INTEGER NOT NULL,
    PRIMARY KEY (log_id, last_offset)
) WITHOUT ROWID;

-- Where the open transaction of the producer begins, -1 if there is none; and the last coordinator that ended one.
ALTER TABLE inkless_producer_state ADD COLUMN txn_first_offset INTEGER NOT NULL DEFAULT -1;
ALTER TABLE inkless_producer_state ADD COLUMN coordinator_epoch INTEGER NOT NULL DEFAULT -1;

CREATE INDEX inkless_producer_state_open ON inkless_producer_state (log_id, txn_first_offset)
WHERE txn_first_offset >= 0;

-- Where the first open transaction of the log begins, and the offset of its newest abort marker; -1 if there is none.
ALTER TABLE inkless_log ADD COLUMN first_unstable_offset INTEGER NOT NULL DEFAULT -1;
ALTER TABLE inkless_log ADD COLUMN last_aborted_offset INTEGER NOT NULL DEFAULT -1;
