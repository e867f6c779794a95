-- $1: now. The rows stay for a while, so that a very late commit is refused.
UPDATE inkless_file
SET state = 'deleted', marked_for_deletion_at_ms = $1, answers = NULL
WHERE file_id = ANY ($2::bigint[]) AND state = 'deleting'
