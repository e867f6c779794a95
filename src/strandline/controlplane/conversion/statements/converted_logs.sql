-- Rows that are left below the read boundary are in segments already, and do not count twice.
SELECT
    l.topic_id, l.topic_name, l.partition, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset,
    l.tiered_high_offset, l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch,
    l.migration_state,
    CAST(l.byte_size - coalesce((
        SELECT sum(b.byte_size)
        FROM inkless_batch b
        WHERE b.log_id = l.log_id AND b.last_offset < l.diskless_start_offset
            AND l.diskless_start_offset > l.diskless_log_start_offset
    ), 0) AS BIGINT), l.last_epoch, l.first_unstable_offset, l.last_aborted_offset
FROM inkless_log l
WHERE NOT l.is_deleted AND l.diskless_log_start_offset >= 0 AND (
    (l.migration_state = 'HYBRID' AND l.diskless_start_offset > l.diskless_log_start_offset)
    OR EXISTS (
        SELECT 1
        FROM inkless_tiering_segment s
        WHERE s.topic_id = l.topic_id AND s.partition = l.partition
    )
)
ORDER BY l.topic_id, l.partition
