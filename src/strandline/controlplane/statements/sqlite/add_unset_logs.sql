-- The logs that are missing, without B0, if the switch of their topic is at the position that is named.
INSERT INTO inkless_log (
    topic_id, partition, topic_name, diskless_start_offset, diskless_log_start_offset, diskless_log_start_epoch,
    migration_state
)
SELECT m.topic_id, n.value->>1, n.value->>2, -1, -1, -1, 'MIGRATING'
FROM json_each($1) AS n
CROSS JOIN inkless_migration m ON m.topic_id = n.value->>0 AND m.position = n.value->>3
WHERE m.aborted_at_ms IS NULL AND n.value->>1 < m.partitions
ON CONFLICT (topic_id, partition) DO NOTHING
