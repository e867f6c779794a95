UPDATE inkless_migration
SET aborted_at_ms = {now_ms}
WHERE topic_id = $1 AND aborted_at_ms IS NULL
