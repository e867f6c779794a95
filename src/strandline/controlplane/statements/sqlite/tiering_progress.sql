-- Each log of topics $1 with what is not in segments: rows and bytes that are eligible, rows that are split, split files.
-- $1: see Cutoff. Reads every row of the logs.
SELECT
    l.topic_id, l.topic_name, l.partition, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset,
    l.tiered_high_offset, l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch,
    l.migration_state, l.byte_size, l.last_epoch,
    count(*) FILTER (WHERE b.tiering_state = 'DISKLESS' AND (
        CASE WHEN b.max_timestamp BETWEEN 0 AND b.log_append_timestamp THEN b.max_timestamp
            ELSE b.log_append_timestamp END < r.value->>1
        OR b.log_append_timestamp <= r.value->>2
    )),
    coalesce(sum(b.byte_size) FILTER (WHERE b.tiering_state = 'DISKLESS' AND (
        CASE WHEN b.max_timestamp BETWEEN 0 AND b.log_append_timestamp THEN b.max_timestamp
            ELSE b.log_append_timestamp END < r.value->>1
        OR b.log_append_timestamp <= r.value->>2
    )), 0),
    count(*) FILTER (WHERE b.tiering_state = 'SPLIT'),
    (
        SELECT count(*)
        FROM inkless_split_batch s
        WHERE s.topic_id = l.topic_id AND s.partition = l.partition AND s.base_offset >= l.diskless_start_offset
            AND s.last_offset >= l.log_start_offset
    )
FROM json_each($1) AS r
CROSS JOIN inkless_log l ON l.topic_id = r.value->>0
LEFT JOIN inkless_batch b ON b.log_id = l.log_id AND b.last_offset >= max(l.diskless_start_offset, l.log_start_offset)
WHERE NOT l.is_deleted AND l.diskless_log_start_offset >= 0
GROUP BY l.log_id
ORDER BY l.topic_id, l.partition
