SELECT
    l.topic_id, l.topic_name, l.partition, l.log_start_offset, l.high_watermark, l.tiered_log_start_offset,
    l.tiered_high_offset, l.diskless_start_offset, l.diskless_log_start_offset, l.diskless_log_start_epoch,
    l.migration_state, l.byte_size, l.last_epoch,
    l.first_unstable_offset, l.last_aborted_offset
FROM inkless_log l
WHERE l.topic_id = ANY ($1::uuid[]) AND NOT l.is_deleted AND EXISTS (
    SELECT 1
    FROM inkless_split_batch s
    WHERE s.topic_id = l.topic_id AND s.partition = l.partition
)
ORDER BY l.topic_id, l.partition
