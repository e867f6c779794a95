-- Locked after the logs of the topic, by everyone.
SELECT position, partitions
FROM inkless_migration
WHERE topic_id = $1 AND aborted_at_ms IS NULL
{for_update}
