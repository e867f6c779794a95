SELECT
    topic_id, topic_name, partition, log_start_offset, high_watermark, tiered_log_start_offset, tiered_high_offset,
    diskless_start_offset, diskless_log_start_offset, diskless_log_start_epoch, migration_state, byte_size, last_epoch,
    first_unstable_offset, last_aborted_offset
FROM inkless_log
WHERE topic_id = ANY ($1::uuid[]) AND NOT is_deleted
ORDER BY topic_id, partition
