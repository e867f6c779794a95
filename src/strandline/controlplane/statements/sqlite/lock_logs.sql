-- Logs to commit to, which have a B0. The transaction holds the only write lock already.
SELECT json_group_array(json_array(
    r.value->>0, l.log_id, l.log_start_offset, l.high_watermark, l.max_timestamp, l.last_epoch,
    l.first_unstable_offset, l.last_aborted_offset
))
FROM json_each($1) AS r
CROSS JOIN inkless_log l ON l.topic_id = r.value->>1 AND l.partition = r.value->>2
WHERE NOT l.is_deleted AND l.diskless_log_start_offset >= 0
