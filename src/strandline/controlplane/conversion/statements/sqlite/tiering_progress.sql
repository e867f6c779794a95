-- Each log of topics $1 with what is not in segments: rows and bytes that are eligible, rows that are split, split files.
-- $1: see Cutoff. Reads every row of the logs: one at a time, without sorting them for groups, and the cutoffs once.
WITH logs AS MATERIALIZED (
    SELECT l.*, r.value->>1 AS older_than_ms, r.value->>2 AS committed_until_ms
    FROM json_each($1) AS r
    CROSS JOIN inkless_log l ON l.topic_id = r.value->>0
    WHERE NOT l.is_deleted AND l.diskless_log_start_offset >= 0
),
counted AS MATERIALIZED (
    SELECT l.*, (
        SELECT json_array(
            count(*) FILTER (WHERE b.is_eligible),
            coalesce(sum(b.byte_size) FILTER (WHERE b.is_eligible), 0),
            count(*) FILTER (WHERE b.tiering_state = 'SPLIT')
        )
        FROM (
            SELECT
                byte_size, tiering_state,
                tiering_state = 'DISKLESS' AND (l.first_unstable_offset < 0 OR last_offset < l.first_unstable_offset) AND (
                    CASE WHEN max_timestamp BETWEEN 0 AND log_append_timestamp THEN max_timestamp
                        ELSE log_append_timestamp END < l.older_than_ms
                    OR log_append_timestamp <= l.committed_until_ms
                ) AS is_eligible
            FROM inkless_batch
            WHERE log_id = l.log_id AND last_offset >= max(l.diskless_start_offset, l.log_start_offset)
        ) AS b
    ) AS counts
    FROM logs l
)
SELECT
    l.topic_id, l.topic_name, l.partition, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset,
    l.tiered_high_offset, l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch,
    l.migration_state, l.byte_size, l.last_epoch, l.first_unstable_offset, l.last_aborted_offset,
    l.counts->>0, l.counts->>1, l.counts->>2,
    (
        SELECT count(*)
        FROM inkless_split_batch s
        WHERE s.topic_id = l.topic_id AND s.partition = l.partition AND s.base_offset >= l.diskless_start_offset
            AND s.last_offset >= l.log_start_offset
    )
FROM counted l
ORDER BY l.topic_id, l.partition
