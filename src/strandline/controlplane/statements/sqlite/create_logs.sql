INSERT INTO inkless_log (topic_id, partition, topic_name)
SELECT value->>0, value->>1, value->>2
FROM json_each($1)
WHERE TRUE
ON CONFLICT (topic_id, partition) DO NOTHING
