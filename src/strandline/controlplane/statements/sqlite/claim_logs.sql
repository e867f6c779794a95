-- Logs that are locked, and have no B0: leaders of these epochs lead their partitions.
UPDATE inkless_log
SET diskless_log_start_epoch = u.value->>1
FROM json_each($1) AS u
WHERE log_id = u.value->>0
