-- The last leader epoch of each diskless log. Needs no short locks: a SQLite database belongs to one process, which is
-- starting.

-- Epochs that went back, because a broker with old metadata committed late.
UPDATE inkless_batch
SET leader_epoch = m.largest
FROM (
    SELECT
        log_id, last_offset, leader_epoch,
        max(leader_epoch) OVER (PARTITION BY log_id ORDER BY last_offset) AS largest
    FROM inkless_batch
) AS m
WHERE inkless_batch.log_id = m.log_id AND inkless_batch.last_offset = m.last_offset AND m.leader_epoch < m.largest;

-- The largest that a batch of the log ever had, also after the batch was deleted; -1 if there was none.
ALTER TABLE inkless_log ADD COLUMN last_epoch INTEGER NOT NULL DEFAULT -1;

UPDATE inkless_log
SET last_epoch = (
    SELECT b.leader_epoch
    FROM inkless_batch b
    WHERE b.log_id = inkless_log.log_id
    ORDER BY b.last_offset DESC
    LIMIT 1
)
WHERE EXISTS (SELECT 1 FROM inkless_batch b WHERE b.log_id = inkless_log.log_id);
