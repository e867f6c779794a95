-- $1: now, the database's own time if it is NULL; $2: the broker that found them. An object that exists again after its deletion is marked once more.
INSERT INTO inkless_file (object_key, state, uploader_broker_id, size, committed_at_ms, marked_for_deletion_at_ms)
SELECT object_key, 'deleting', $2::int, 0, t.now_ms, t.now_ms
FROM unnest($3::text[]) AS o(object_key), (SELECT coalesce($1::bigint, {now_ms}) AS now_ms) AS t
ORDER BY object_key
ON CONFLICT (object_key) DO UPDATE
SET state = 'deleting', marked_for_deletion_at_ms = excluded.marked_for_deletion_at_ms
WHERE inkless_file.state = 'deleted'
RETURNING object_key
