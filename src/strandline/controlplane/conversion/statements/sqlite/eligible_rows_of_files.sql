-- How many rows of files $2 are eligible. $1: see Cutoff.
WITH r AS MATERIALIZED (
    SELECT value->>0 AS topic_id, value->>1 AS older_than_ms, value->>2 AS committed_until_ms
    FROM json_each($1)
)
SELECT b.file_id, count(*)
FROM json_each($2) AS f
CROSS JOIN inkless_batch b ON b.file_id = f.value->>0
CROSS JOIN inkless_log l ON l.log_id = b.log_id
CROSS JOIN r ON r.topic_id = l.topic_id
WHERE b.tiering_state = 'DISKLESS' AND NOT l.is_deleted
    AND l.migration_state <> 'MIGRATING'
    AND (l.log_start_offset >= l.diskless_log_start_offset OR l.tiered_high_offset >= l.diskless_log_start_offset - 1)
    AND b.last_offset >= l.log_start_offset
    AND (l.first_unstable_offset < 0 OR b.last_offset < l.first_unstable_offset)
    AND (
        CASE WHEN b.max_timestamp BETWEEN 0 AND b.log_append_timestamp THEN b.max_timestamp
            ELSE b.log_append_timestamp END < r.older_than_ms
        OR b.log_append_timestamp <= r.committed_until_ms
    )
GROUP BY b.file_id
