-- Partitions that the switch of their topic concerns, or concerned until it was aborted, have records that are not in this
-- database: they must not begin at 0.
INSERT INTO inkless_log (topic_id, partition, topic_name, diskless_log_start_offset)
SELECT n.value->>0, n.value->>1, n.value->>2, 0
FROM json_each($1) AS n
WHERE NOT EXISTS (
    SELECT 1
    FROM inkless_migration m
    WHERE m.topic_id = n.value->>0 AND n.value->>1 < m.partitions
)
ON CONFLICT (topic_id, partition) DO NOTHING
