-- $1: now. Keys that are known, because they were taken as orphans, are left out.
INSERT INTO inkless_file (object_key, format, state, uploader_broker_id, size, committed_at_ms)
SELECT value->>0, -1, 'uploaded', -1, value->>1, $1
FROM json_each($2)
WHERE TRUE
ON CONFLICT (object_key) DO NOTHING
RETURNING object_key, file_id
