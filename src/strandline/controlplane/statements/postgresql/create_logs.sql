-- Existing logs are filtered out first, so that a repeated call uses up no ids. Partitions that the switch of their topic
-- concerns, or concerned until it was aborted, have records that are not in this database: they must not begin at 0.
INSERT INTO inkless_log (topic_id, partition, topic_name, diskless_log_start_offset)
SELECT topic_id, partition, topic_name, 0
FROM unnest($1::uuid[], $2::int[], $3::text[]) AS n(topic_id, partition, topic_name)
WHERE NOT EXISTS (SELECT 1 FROM inkless_log l WHERE l.topic_id = n.topic_id AND l.partition = n.partition)
    AND NOT EXISTS (SELECT 1 FROM inkless_migration m WHERE m.topic_id = n.topic_id AND n.partition < m.partitions)
ORDER BY topic_id, partition
ON CONFLICT (topic_id, partition) DO NOTHING
