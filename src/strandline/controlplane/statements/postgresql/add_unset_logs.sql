-- The logs that are missing, without B0, if the switch of their topic is at the position that is named.
INSERT INTO inkless_log (
    topic_id, partition, topic_name, diskless_start_offset, diskless_log_start_offset, diskless_log_start_epoch,
    migration_state
)
SELECT n.topic_id, n.partition, n.topic_name, -1, -1, -1, 'MIGRATING'
FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[]) AS n(topic_id, partition, topic_name, position)
JOIN inkless_migration m ON m.topic_id = n.topic_id AND m.position = n.position
WHERE m.aborted_at_ms IS NULL AND n.partition < m.partitions
    AND NOT EXISTS (SELECT 1 FROM inkless_log l WHERE l.topic_id = n.topic_id AND l.partition = n.partition)
ORDER BY n.topic_id, n.partition
ON CONFLICT (topic_id, partition) DO NOTHING
