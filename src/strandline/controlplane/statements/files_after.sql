SELECT file_id, object_key, size, uploader_broker_id, committed_at_ms, marked_for_deletion_at_ms
FROM inkless_file
WHERE file_id > $1 AND state <> 'deleted'
ORDER BY file_id
LIMIT $2
