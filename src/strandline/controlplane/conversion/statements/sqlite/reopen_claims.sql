-- WAL objects of which there is something to split again.
DELETE FROM inkless_wal_file_claim
WHERE split_completed AND object_key IN (
    SELECT object_key
    FROM inkless_file
    WHERE file_id IN (SELECT value->>0 FROM json_each($1))
)
