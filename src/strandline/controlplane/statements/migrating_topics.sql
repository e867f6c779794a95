SELECT topic_id
FROM inkless_migration
WHERE aborted_at_ms IS NULL
ORDER BY position
