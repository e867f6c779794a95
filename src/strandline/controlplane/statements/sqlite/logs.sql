-- Rows that are left below the read boundary are in segments already, and do not count twice.
SELECT json_group_array(json_array(
    r.value->>0, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset, l.tiered_high_offset,
    l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch, l.migration_state,
    CAST(l.byte_size - coalesce((
        SELECT sum(b.byte_size)
        FROM inkless_batch b
        WHERE b.log_id = l.log_id AND b.last_offset < l.diskless_start_offset
            AND l.diskless_start_offset > l.diskless_log_start_offset
    ), 0) AS BIGINT),
    l.last_epoch, l.first_unstable_offset, l.last_aborted_offset
))
FROM json_each($1) AS r
CROSS JOIN inkless_log l ON l.topic_id = r.value->>1 AND l.partition = r.value->>2
WHERE NOT l.is_deleted
