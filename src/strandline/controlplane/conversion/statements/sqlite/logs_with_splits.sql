SELECT json_group_array(json_array(
    topic_id, topic_name, partition, log_start_offset, high_watermark, tiered_log_start_offset, tiered_high_offset,
    diskless_start_offset, diskless_log_start_offset, diskless_log_start_epoch, migration_state, byte_size, last_epoch,
    first_unstable_offset, last_aborted_offset
))
FROM (
    SELECT l.*
    FROM json_each($1) AS r
    CROSS JOIN inkless_log l ON l.topic_id = r.value->>0
    WHERE NOT l.is_deleted AND EXISTS (
        SELECT 1
        FROM inkless_split_batch s
        WHERE s.topic_id = l.topic_id AND s.partition = l.partition
    )
    ORDER BY l.topic_id, l.partition
)
