-- Logs with all their offsets, locked in the order of their ids. Includes logs whose deletion has begun.
SELECT
    r.position, l.log_id, l.is_deleted, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset,
    l.tiered_high_offset, l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch,
    l.migration_state, l.byte_size, l.last_epoch, l.first_unstable_offset,
    l.last_aborted_offset
FROM unnest($1::int[], $2::uuid[], $3::int[]) AS r(position, topic_id, partition)
JOIN inkless_log l ON l.topic_id = r.topic_id AND l.partition = r.partition
ORDER BY l.log_id
FOR UPDATE OF l
