-- $1: now, the database's own time if it is NULL; $2: the broker that found them. An object that exists again after its deletion is marked once more.
INSERT INTO inkless_file (object_key, state, uploader_broker_id, size, committed_at_ms, marked_for_deletion_at_ms)
SELECT value->>0, 'deleting', $2, 0, coalesce($1, {now_ms}), coalesce($1, {now_ms})
FROM json_each($3)
WHERE TRUE
ON CONFLICT (object_key) DO UPDATE
SET state = 'deleting', marked_for_deletion_at_ms = excluded.marked_for_deletion_at_ms
WHERE inkless_file.state = 'deleted'
RETURNING object_key
