-- $1: now. The rows stay for a while, so that a very late commit is refused.
UPDATE inkless_file
SET state = 'deleted', marked_for_deletion_at_ms = $1, answers = NULL
WHERE file_id IN (SELECT value->>0 FROM json_each($2)) AND state = 'deleting'
