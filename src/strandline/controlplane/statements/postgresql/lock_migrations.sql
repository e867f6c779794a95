-- The switches of some topics, locked in their order, after the logs of the topics.
SELECT position
FROM inkless_migration
WHERE topic_id = ANY ($1::uuid[]) AND aborted_at_ms IS NULL
ORDER BY position
FOR UPDATE
