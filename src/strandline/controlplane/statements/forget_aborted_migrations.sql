-- That of topic $1, and those that were aborted more than $2 ms ago: every broker has heard of them.
DELETE FROM inkless_migration
WHERE aborted_at_ms IS NOT NULL AND (topic_id = $1 OR aborted_at_ms < {now_ms} - CAST($2 AS BIGINT))
