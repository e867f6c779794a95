-- $1: now. Keys that are known, because they were taken as orphans, are left out.
INSERT INTO inkless_file (object_key, format, state, uploader_broker_id, size, committed_at_ms)
SELECT object_key, -1, 'uploaded', -1, size, $1::bigint
FROM unnest($2::text[], $3::bigint[]) AS s(object_key, size)
ORDER BY object_key
ON CONFLICT (object_key) DO NOTHING
RETURNING object_key, file_id
