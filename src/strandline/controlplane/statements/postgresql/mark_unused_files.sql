-- $1: now; the database's own time if it is NULL.
UPDATE inkless_file f
SET state = 'deleting', marked_for_deletion_at_ms = coalesce($1::bigint, {now_ms})
WHERE f.file_id = ANY ($2::bigint[]) AND f.state = 'uploaded'
    AND NOT EXISTS (SELECT 1 FROM inkless_batch b WHERE b.file_id = f.file_id)
