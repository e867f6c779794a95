-- $1: now; the database's own time if it is NULL.
UPDATE inkless_file
SET state = 'deleting', marked_for_deletion_at_ms = coalesce($1, {now_ms})
WHERE file_id IN (SELECT value->>0 FROM json_each($2)) AND state = 'uploaded'
    AND NOT EXISTS (SELECT 1 FROM inkless_batch b WHERE b.file_id = inkless_file.file_id)
