-- Logs that are locked, and have no B0: leaders of these epochs lead their partitions.
UPDATE inkless_log l
SET diskless_log_start_epoch = u.leader_epoch
FROM unnest($1::int[], $2::int[]) AS u(log_id, leader_epoch)
WHERE l.log_id = u.log_id
