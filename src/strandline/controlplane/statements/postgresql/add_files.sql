-- $1: now. A file of which nothing was accepted goes at once.
INSERT INTO inkless_file (
    object_key, state, uploader_broker_id, size, committed_at_ms, marked_for_deletion_at_ms, answers
)
SELECT
    object_key,
    CASE WHEN is_used THEN 'uploaded' ELSE 'deleting' END,
    broker_id,
    size,
    $1::bigint,
    CASE WHEN is_used THEN NULL ELSE $1::bigint END,
    answers
FROM unnest($2::text[], $3::int[], $4::bigint[], $5::boolean[], $6::text[])
    AS f(object_key, broker_id, size, is_used, answers)
ORDER BY object_key
RETURNING object_key, file_id
