-- Rows that are left below the read boundary are in segments already, and do not count twice.
SELECT
    r.position, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset, l.tiered_high_offset,
    l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch, l.migration_state,
    CAST(l.byte_size - coalesce((
        SELECT sum(b.byte_size)
        FROM inkless_batch b
        WHERE b.log_id = l.log_id AND b.last_offset < l.diskless_start_offset
            AND l.diskless_start_offset > l.diskless_log_start_offset
    ), 0) AS BIGINT),
    l.last_epoch, l.first_unstable_offset, l.last_aborted_offset
FROM unnest($1::int[], $2::uuid[], $3::int[]) AS r(position, topic_id, partition)
JOIN inkless_log l ON l.topic_id = r.topic_id AND l.partition = r.partition
WHERE NOT l.is_deleted
