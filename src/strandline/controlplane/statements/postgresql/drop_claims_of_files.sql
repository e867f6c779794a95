DELETE FROM inkless_wal_file_claim
WHERE object_key IN (
    SELECT object_key
    FROM inkless_file
    WHERE file_id = ANY ($1::bigint[]) AND state = 'deleting'
)
