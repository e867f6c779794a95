-- The last leader epoch of each diskless log. Takes locks on the batches that it changes, of which there are few or none,
-- and at the very end, for a moment, one on the table of logs, for which commits wait. It does not wait longer than two
-- seconds for that lock, because commits would wait behind it: if a long transaction holds it, the start of the broker
-- fails and can be repeated.

-- Epochs that went back, because a broker with old metadata committed late. In the order in which retention locks rows.
WITH wrong AS (
    SELECT b.log_id, b.last_offset, m.largest
    FROM (
        SELECT
            log_id, last_offset, leader_epoch,
            max(leader_epoch) OVER (PARTITION BY log_id ORDER BY last_offset) AS largest
        FROM inkless_batch
    ) AS m
    JOIN inkless_batch b ON b.log_id = m.log_id AND b.last_offset = m.last_offset
    WHERE m.leader_epoch < m.largest
    ORDER BY b.log_id, b.last_offset
    FOR UPDATE OF b
)
UPDATE inkless_batch b
SET leader_epoch = w.largest
FROM wrong w
WHERE b.log_id = w.log_id AND b.last_offset = w.last_offset;

SET LOCAL lock_timeout = '2s';

-- The largest that a batch of the log ever had, also after the batch was deleted; -1 if there was none.
ALTER TABLE inkless_log ADD COLUMN last_epoch INTEGER NOT NULL DEFAULT -1;

UPDATE inkless_log l
SET last_epoch = (
    SELECT b.leader_epoch
    FROM inkless_batch b
    WHERE b.log_id = l.log_id
    ORDER BY b.last_offset DESC
    LIMIT 1
)
WHERE EXISTS (SELECT 1 FROM inkless_batch b WHERE b.log_id = l.log_id);

SET LOCAL lock_timeout TO DEFAULT;
