-- The eligible rows of files $4, by file, partition and offset. $1..$3: see Cutoff.
SELECT
    b.file_id, l.topic_id, l.topic_name, l.partition, b.base_offset, b.last_offset, b.byte_offset, b.byte_size,
    b.timestamp_type, b.log_append_timestamp, b.max_timestamp, b.leader_epoch
FROM inkless_batch b
JOIN inkless_log l ON l.log_id = b.log_id
JOIN unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS r(topic_id, older_than_ms, committed_until_ms)
    ON r.topic_id = l.topic_id
WHERE b.file_id = ANY ($4::bigint[]) AND b.tiering_state = 'DISKLESS' AND NOT l.is_deleted
    AND l.migration_state <> 'MIGRATING'
    AND (l.log_start_offset >= l.diskless_log_start_offset OR l.tiered_high_offset >= l.diskless_log_start_offset - 1)
    AND b.last_offset >= l.log_start_offset
    AND (l.first_unstable_offset < 0 OR b.last_offset < l.first_unstable_offset)
    AND (
        CASE WHEN b.max_timestamp BETWEEN 0 AND b.log_append_timestamp THEN b.max_timestamp
            ELSE b.log_append_timestamp END < r.older_than_ms
        OR b.log_append_timestamp <= r.committed_until_ms
    )
ORDER BY b.file_id, b.log_id, b.last_offset
