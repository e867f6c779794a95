-- Transactions on diskless logs. Creates a table, then takes short locks on the tables of logs and of producers, in the
-- order of commits, which wait for them. It does not wait longer than two seconds for each: if a long transaction holds
-- one, the start of the broker fails and can be repeated.

-- Aborted transactions: from the first offset of a producer's transaction to its marker. `last_stable_offset` is that of
-- the log right behind the marker. A row goes with the batches of its marker.
CREATE TABLE inkless_aborted_txn (
    log_id INTEGER NOT NULL,
    last_offset BIGINT NOT NULL,
    first_offset BIGINT NOT NULL,
    producer_id BIGINT NOT NULL,
    last_stable_offset BIGINT NOT NULL,
    PRIMARY KEY (log_id, last_offset)
);

SET LOCAL lock_timeout = '2s';

-- Where the first open transaction of the log begins, and the offset of its newest abort marker; -1 if there is none.
ALTER TABLE inkless_log
ADD COLUMN first_unstable_offset BIGINT NOT NULL DEFAULT -1,
ADD COLUMN last_aborted_offset BIGINT NOT NULL DEFAULT -1;

-- Where the open transaction of the producer begins, -1 if there is none; and the last coordinator that ended one.
ALTER TABLE inkless_producer_state
ADD COLUMN txn_first_offset BIGINT NOT NULL DEFAULT -1,
ADD COLUMN coordinator_epoch INTEGER NOT NULL DEFAULT -1;

CREATE INDEX inkless_producer_state_open ON inkless_producer_state (log_id, txn_first_offset)
WHERE txn_first_offset >= 0;

SET LOCAL lock_timeout TO DEFAULT;
