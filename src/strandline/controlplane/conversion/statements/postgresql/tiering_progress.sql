-- Each log of topics $1 with what is not in segments: rows and bytes that are eligible, rows that are split, split files.
-- $2, $3: see Cutoff. Reads every row of the logs.
SELECT
    l.topic_id, l.topic_name, l.partition, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset,
    l.tiered_high_offset, l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch,
    l.migration_state, l.byte_size, l.last_epoch, l.first_unstable_offset, l.last_aborted_offset,
    b.eligible_rows, b.eligible_bytes, b.split_rows, s.split_files
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS r(topic_id, older_than_ms, committed_until_ms)
JOIN inkless_log l ON l.topic_id = r.topic_id AND NOT l.is_deleted AND l.diskless_log_start_offset >= 0
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE n.is_eligible) AS eligible_rows,
        CAST(coalesce(sum(n.byte_size) FILTER (WHERE n.is_eligible), 0) AS BIGINT) AS eligible_bytes,
        count(*) FILTER (WHERE n.tiering_state = 'SPLIT') AS split_rows
    FROM (
        SELECT
            byte_size, tiering_state,
            tiering_state = 'DISKLESS' AND (l.first_unstable_offset < 0 OR last_offset < l.first_unstable_offset) AND (
                CASE WHEN max_timestamp BETWEEN 0 AND log_append_timestamp THEN max_timestamp
                    ELSE log_append_timestamp END < r.older_than_ms
                OR log_append_timestamp <= r.committed_until_ms
            ) AS is_eligible
        FROM inkless_batch
        WHERE log_id = l.log_id AND last_offset >= l.diskless_start_offset AND last_offset >= l.log_start_offset
    ) AS n
) AS b
CROSS JOIN LATERAL (
    SELECT count(*) AS split_files
    FROM inkless_split_batch
    WHERE topic_id = l.topic_id AND partition = l.partition AND base_offset >= l.diskless_start_offset
        AND last_offset >= l.log_start_offset
) AS s
ORDER BY l.topic_id, l.partition
