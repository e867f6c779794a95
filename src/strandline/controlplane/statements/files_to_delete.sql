SELECT file_id, object_key, size, uploader_broker_id, committed_at_ms, marked_for_deletion_at_ms
FROM inkless_file
WHERE state = 'deleting' AND marked_for_deletion_at_ms <= $1
ORDER BY marked_for_deletion_at_ms, file_id
LIMIT $2
