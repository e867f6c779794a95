-- Existing logs are filtered out first, so that a repeated call uses up no ids.
INSERT INTO inkless_log (topic_id, partition, topic_name)
SELECT topic_id, partition, topic_name
FROM unnest($1::uuid[], $2::int[], $3::text[]) AS n(topic_id, partition, topic_name)
WHERE NOT EXISTS (SELECT 1 FROM inkless_log l WHERE l.topic_id = n.topic_id AND l.partition = n.partition)
ORDER BY topic_id, partition
ON CONFLICT (topic_id, partition) DO NOTHING
