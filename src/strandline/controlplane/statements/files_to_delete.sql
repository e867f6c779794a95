SELECT file_id, object_key, size, uploader_broker_id, committed_at_ms, marked_for_deletion_at_ms
FROM inkless_file
-- The second condition follows from the first, but SQLite does not see it, and takes no partial index without it.
WHERE state = 'deleting' AND state <> 'uploaded' AND marked_for_deletion_at_ms <= $1
ORDER BY marked_for_deletion_at_ms, file_id
LIMIT $2
