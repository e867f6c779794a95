-- $1: now. A file of which no batch was accepted is marked for deletion.
INSERT INTO inkless_file (
    object_key, state, uploader_broker_id, size, committed_at_ms, marked_for_deletion_at_ms, answers
)
SELECT
    value->>0,
    CASE WHEN value->>3 THEN 'uploaded' ELSE 'deleting' END,
    value->>1,
    value->>2,
    $1,
    CASE WHEN value->>3 THEN NULL ELSE $1 END,
    value->>4
FROM json_each($2)
WHERE TRUE
RETURNING object_key, file_id
