DELETE FROM inkless_wal_file_claim
WHERE object_key IN (
    SELECT object_key
    FROM inkless_file
    WHERE file_id IN (SELECT value->>0 FROM json_each($1)) AND state = 'deleting'
)
