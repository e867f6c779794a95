-- Logs with all their offsets. Includes logs whose deletion has begun. The transaction holds the only write lock already.
SELECT json_group_array(json_array(
    r.value->>0, l.log_id, l.is_deleted, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset,
    l.tiered_high_offset, l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch,
    l.migration_state, l.byte_size, l.last_epoch, l.first_unstable_offset,
    l.last_aborted_offset
))
FROM json_each($1) AS r
CROSS JOIN inkless_log l ON l.topic_id = r.value->>1 AND l.partition = r.value->>2
